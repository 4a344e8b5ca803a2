"use strict";
// All of this is a convenience: without scripts the page is the same, but its tables neither sort nor filter.
const collator = new Intl.Collator("en", { numeric: true });

function keyOf(row, column) {
  const cell = row.cells[column];
  const text = cell.dataset.key ?? cell.textContent;
  if (text === "—" || text === "") return null;
  return cell.classList.contains("number") ? Number(text.replaceAll(",", "")) : text;
}

function sortBy(table, header) {
  const column = header.cellIndex;
  const descending = header.getAttribute("aria-sort") === "ascending";
  const rows = [...table.tBodies[0].rows].map((row) => [keyOf(row, column), row]);
  rows.sort(([a], [b]) => {
    if (a === null || b === null) return (a === null) - (b === null); // what is missing comes last either way
    const order = typeof a === "number" ? a - b : collator.compare(a, b);
    return descending ? -order : order;
  });
  table.tBodies[0].append(...rows.map(([, row]) => row));
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  header.setAttribute("aria-sort", descending ? "descending" : "ascending");
}

for (const header of document.querySelectorAll("thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...header.childNodes);
  header.append(button);
  button.addEventListener("click", () => sortBy(header.closest("table"), header));
}

for (const block of document.querySelectorAll("[data-filter]")) {
  const [bar, search] = [block.querySelector(".filter"), block.querySelector("input[type=search]")];
  const [only, count] = [block.querySelector("input[type=checkbox]"), block.querySelector("output")];
  const rows = [...block.querySelector("tbody").rows];
  bar.hidden = false;
  const apply = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
      const fits = words.every((word) => text.includes(word)) && !(only?.checked && !row.querySelector("td.bad"));
      row.hidden = !fits;
      shown += fits;
    }
    count.textContent = shown === rows.length ? `${shown} rows` : `${shown} of ${rows.length} rows`;
  };
  search.addEventListener("input", apply);
  only?.addEventListener("change", apply);
}

const tip = document.getElementById("tip");
document.addEventListener("pointermove", (event) => {
  const mark = event.target.closest?.("svg [role=graphics-symbol][aria-label]");
  const told = mark && mark.getAttribute("aria-roledescription") !== "axis" ? mark.getAttribute("aria-label") : "";
  tip.hidden = !told;
  if (!told) return;
  tip.textContent = told;
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 16, innerHeight - tip.offsetHeight - 8)}px`;
});

let closed = [];
addEventListener("beforeprint", () => {
  closed = [...document.querySelectorAll("details:not([open])")].filter((details) => !details.closest("footer"));
  for (const details of closed) details.open = true;
});
addEventListener("afterprint", () => {
  for (const details of closed) details.open = false;
});
