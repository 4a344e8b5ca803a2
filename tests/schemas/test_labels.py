"""What ExportConfig takes for labels and a licence."""

from pathlib import Path

import pytest

from tfx_edge.schemas import ConfigError, ExportConfig


def test_labels_are_read_from_a_file_when_the_config_is_made(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_bytes("\ufeffÄsche\r\nbirch tree\n".encode())
    config = ExportConfig(labels=str(tmp_path / "labels.txt"))
    assert config == ExportConfig(labels=("Äsche", "birch tree"))
    assert str(tmp_path) not in config.to_json() and ExportConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        ("nowhere.txt", r"got 'nowhere.txt'; the label file can't be read \(.*\); give a local UTF-8 file"),
        (("a", "b", "a"), "label 'a' stands at 0 and 2; give each position a label of its own"),
        (("a", "b\nc"), r"label 1 is 'b\\nc'; give each a text of one line"),
        (("a", " "), "label 1 is ' '"),
    ],
)
def test_labels_that_no_label_file_could_hold_are_refused(labels: str | tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=f"^ExportConfig.labels: .*{said}"):
        ExportConfig(labels=labels)


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "labels").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="the label file can't be read"):
        ExportConfig(labels=str(tmp_path / "labels"))


@pytest.mark.parametrize("expression", ["", "MIT", "Apache-2.0", "MIT OR (Apache-2.0 AND BSD-3-Clause)", "GPL-2.0+", "LicenseRef-Acme"])
def test_spdx_expressions_are_taken(expression: str) -> None:
    assert ExportConfig(license=expression).license == expression


@pytest.mark.parametrize("text", ["see LICENSE", "MIT or BSD", "MIT OR", "/opt/LICENSE"])
def test_other_words_for_a_licence_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^ExportConfig.license: got .*expected an SPDX expression"):
        ExportConfig(license=text)


@pytest.mark.parametrize("field", ["name", "description", "version", "author"])
@pytest.mark.parametrize("text", ["a\0b", "two\nlines", "\x1b[31mred", "a\u2028b"])
def test_texts_that_would_break_a_listing_or_end_a_c_string_are_refused(field: str, text: str) -> None:
    with pytest.raises(ConfigError, match=rf"^ExportConfig.{field}: got .*one line of text"):
        ExportConfig(**{field: text})
    assert ExportConfig(**{field: "Größe “90 %”, 数字"})
