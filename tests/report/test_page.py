"""The page's text: what it holds, what it leaves out and says so, and that nothing in it can be anything but text."""

import re
import struct
import subprocess
import sys
import zlib
from base64 import b64decode
from html.parser import HTMLParser

import pytest
import run_reports
from run_reports import ACCURACY, HOSTILE

from tfx_edge.report.images import data_uri
from tfx_edge.report.page import render_page
from tfx_edge.schemas import ExampleImage, JudgedModel, RunReport


class Page(HTMLParser):
    """Elements of a page with their attributes, and its text without scripts and styles."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._inside = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.text += f" {data.strip()}" if data.strip() else ""


@pytest.fixture(scope="module")
def html() -> str:
    return render_page(run_reports.whole_run())


def test_the_page_has_everything_that_the_run_has(html: str) -> None:
    page = Page(html)
    titles = [
        "Float against edge model",
        "Size, latency, memory, targets",
        "Accuracy against size",
        "Disagreements",
        "Layers",
        "Drift of the predictions",
        "Plan",
        "Origin",
        "Lineage",
        "History",
    ]
    at = [page.text.index(title, page.text.index("Sections") if "Sections" in page.text else 0) for title in titles]
    assert at == sorted(at)
    for told in ("Blessed", "digit=9", "83.1 kB", "6.6 times smaller", "flipped", "kept digit", "digit1", "tflite-micro", "Not blessed"):
        assert told.lower() in page.text.lower(), told
    assert [attrs for tag, attrs in page.elements if attrs.get("aria-label") == "Left out"] == []
    charts = [attrs for tag, attrs in page.elements if tag == "svg"]
    assert len(charts) == 12
    assert all(chart["aria-label"] and chart["role"] == "graphics-document" for chart in charts)
    assert len([tag for tag, _ in page.elements if tag == "img"]) == 4


def test_reasons_come_before_everything_else(html: str) -> None:
    reason = f"{ACCURACY}, slice digit=3 (103 examples): it lost too much"
    page = Page(render_page(run_reports.whole_run(reasons=(reason, "size: too large"))))
    assert page.text.index("Not blessed") < page.text.index(reason) < page.text.index("size: too large") < page.text.index("Float against")
    assert "No reason against it" in Page(html).text
    row = page.text[page.text.index("digit=3", page.text.index("Metrics of both models")) :]
    assert "refused" in row[:90]


def test_a_gates_report_alone_makes_a_page_that_says_what_is_left_out_and_why() -> None:
    report = run_reports.gate_report().model_copy(
        update={"layers": None, "drift": (), "metrics": (), "baseline_latency_ms": None, "latency_ms": None}
    )
    page = Page(render_page(RunReport(models=(JudgedModel(name="model.tflite", report=report, missing={"decisions": "it is gone."}),))))
    for line in (
        "Confusion matrices and worst disagreements: it is gone.",
        "Plan: the run has no Quantizer",
        "Lineage: this is a gate's report alone",
        "History: this is a gate's report alone",
        "Sparsity: the run has no Pruner",
        "Errors by operator: ",
        "Latency: not measured",
        "Drift: the models couldn't be evaluated",
        "Accuracy against size: no model",
    ):
        assert line in page.text
    assert "model.tflite" in page.text


@pytest.mark.parametrize("models", [1, 2])
def test_no_name_from_a_model_or_the_data_becomes_markup_or_script(models: int) -> None:
    plain = Page(render_page(run_reports.whole_run(models=models, labels=("a", "b", "c"), reasons=("no",))))
    hostile = Page(
        render_page(run_reports.whole_run(HOSTILE, models=models, labels=(HOSTILE, f"{HOSTILE}2", f"{HOSTILE}3"), reasons=(HOSTILE,)))
    )
    # An SVG wraps and cuts what it draws by its length, but has no other elements.
    assert {tag for tag, _ in hostile.elements} == {tag for tag, _ in plain.elements}
    assert [tag for tag, _ in hostile.elements].count("script") == 1
    assert [tag for tag, _ in hostile.elements].count("img") == 4 * models
    assert not [name for _, attrs in hostile.elements for name in attrs if name.startswith("on")]
    assert HOSTILE in hostile.text and "49" not in re.findall(r"\{\{7\*7\}\}|(?<=amp;)49", hostile.text)


def test_nothing_in_the_page_names_a_place_to_load_from(html: str) -> None:
    for tag, attrs in Page(html).elements:
        for name in ("src", "href", "xlink:href", "data", "action", "srcset"):
            assert (attrs.get(name) or "#").startswith(("#", "data:")), (tag, attrs)
        assert "http-equiv" not in attrs or attrs["http-equiv"] == "Content-Security-Policy"
    style = re.search(r"<style>(.*?)</style>", html, re.DOTALL)[1]
    assert "url(" not in style and "@import" not in style
    (policy,) = [attrs["content"] for tag, attrs in Page(html).elements if attrs.get("http-equiv")]
    assert policy.startswith("default-src 'none'; img-src data:; style-src 'sha256-")


def test_a_page_stays_below_2_mb_however_much_a_run_has_and_says_what_it_cut() -> None:
    html = render_page(run_reports.huge_run())
    assert len(html.encode()) < 2_000_000
    assert "600 of 20,001 rows, those that lost most; the others are in the JSON." in html
    assert "200 of 3000 reasons" in html
    assert "digit=19999" in html and "digit=5<" not in html, "the worst slices are the ones to keep"


def test_of_many_models_a_page_has_as_many_in_full_as_fit_and_says_so() -> None:
    one = run_reports.huge_run()
    run = one.model_copy(update={"models": tuple(one.models[0].model_copy(update={"name": f"variant {i}"}) for i in range(4))})
    html = render_page(run)
    assert len(html.encode()) < 2_000_000
    assert "3 models in full, to keep the page small" in html


def test_ids_are_unlike_each_other_and_labels_name_something_that_is_there() -> None:
    html = render_page(run_reports.whole_run(models=2))
    page = Page(html)
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    named = {attrs["aria-labelledby"] for _, attrs in page.elements if "aria-labelledby" in attrs}
    linked = {attrs["href"][1:] for tag, attrs in page.elements if tag == "a" and attrs["href"].startswith("#")}
    assert named | linked <= set(ids)
    assert set(re.findall(r'="url\(#([^)]+)\)"', html)) <= set(ids)


def test_the_same_run_gives_the_same_page(html: str) -> None:
    assert render_page(run_reports.whole_run()) == html


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_an_image_becomes_a_png_of_its_pixels(channels: int) -> None:
    pixels = bytes(range(5 * 4 * channels))
    import base64

    image = ExampleImage(height=5, width=4, channels=channels, step=1, low=0, high=1, pixels=base64.b64encode(pixels).decode())
    png = b64decode(data_uri(image).removeprefix("data:image/png;base64,"))
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    chunks, at = {}, 8
    while at < len(png):
        (length,) = struct.unpack(">I", png[at : at + 4])
        kind, content = png[at + 4 : at + 8], png[at + 8 : at + 8 + length]
        assert struct.unpack(">I", png[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + content)
        chunks[kind] = content
        at += 12 + length
    assert struct.unpack(">IIBB", chunks[b"IHDR"][:10]) == (4, 5, 8, {1: 0, 3: 2, 4: 6}[channels])
    rows = zlib.decompress(chunks[b"IDAT"])
    assert b"".join(rows[i + 1 : i + 1 + 4 * channels] for i in range(0, len(rows), 1 + 4 * channels)) == pixels


def test_a_page_is_made_without_tensorflow_and_tfx() -> None:
    code = (
        "import sys, run_reports; from tfx_edge.report.page import render_page; render_page(run_reports.whole_run());"
        "print([m for m in ('tensorflow', 'tfx', 'apache_beam', 'tf_keras') if m in sys.modules])"
    )
    path = run_reports.__file__.rpartition("/")[0]
    run = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {path!r}); {code}"], capture_output=True, text=True, check=True, cwd="/"
    )
    assert run.stdout.strip() == "[]"
