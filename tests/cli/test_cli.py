import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import tfx_edge.cli
from tfx_edge.cli import cli, main
from tfx_edge.schemas import EdgeError


def test_help_names_every_command_and_each_has_a_help_with_an_example() -> None:
    listed = CliRunner().invoke(cli, ["--help"])
    assert listed.exit_code == 0
    for name in cli.list_commands(click.Context(cli)):
        assert name in listed.output
        own = CliRunner().invoke(cli, [name, "--help"])
        assert own.exit_code == 0
        assert f"Example: tfx-edge {name}" in own.output


def test_help_imports_neither_tensorflow_nor_tfx_nor_beam() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from tfx_edge.cli import cli; "
        "assert CliRunner().invoke(cli, ['demo', '--help']).exit_code == 0; "
        "print([m for m in ('tensorflow', 'tfx', 'apache_beam', 'ai_edge_litert') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert run.stdout.strip() == "[]"


def test_a_users_mistake_is_one_line_without_a_traceback_and_exit_status_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    @click.command()
    def mistake() -> None:
        raise EdgeError("split 'evil': not there; name another")

    monkeypatch.setattr(tfx_edge.cli.cli, "get_command", lambda ctx, name: mistake)
    monkeypatch.setattr(sys, "argv", ["tfx-edge", "mistake"])
    with pytest.raises(SystemExit) as exit_status:
        main()
    assert exit_status.value.code == 1
    assert capsys.readouterr().err == "error: split 'evil': not there; name another\n"


def test_an_unknown_command_is_refused() -> None:
    result = CliRunner().invoke(cli, ["no-such-command"])
    assert result.exit_code == 2
    assert "no-such-command" in result.output


@pytest.mark.parametrize("obstacle", ["home below a file", "digits is a file", "run.log is a folder", "metadata.db is no database"])
def test_a_home_that_cannot_serve_is_named_before_anything_runs(obstacle: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    if obstacle == "home below a file":
        home.write_text("")
        home = home / "below"
    elif obstacle == "digits is a file":
        home.mkdir()
        (home / "digits").write_text("")
    elif obstacle == "run.log is a folder":
        (home / "digits" / "run.log").mkdir(parents=True)
    else:
        (home / "digits").mkdir(parents=True)
        (home / "digits" / "metadata.db").write_bytes(bytes(range(256)))
    result = CliRunner().invoke(cli, ["demo", "--home", str(home)])
    assert isinstance(result.exception, EdgeError)
    assert str(tmp_path) in str(result.exception)
    assert re.search("give another folder|run again", str(result.exception))
    assert not (home / "digits" / "data").exists()
