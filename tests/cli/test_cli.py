import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import tfx_edge.cli
from tfx_edge.cli import cli, main
from tfx_edge.schemas import EdgeError


def leaves(command: click.Command, name: str = "tfx-edge") -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, under the name that a user types."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    context = click.Context(command)
    for each in command.list_commands(context):
        found = command.get_command(context, each)
        assert found is not None
        yield from leaves(found, f"{name} {each}")


COMMANDS = dict(leaves(cli))


def test_help_names_every_command() -> None:
    listed = CliRunner().invoke(cli, ["--help"])
    assert listed.exit_code == 0
    assert all(name in listed.output for name in cli.list_commands(click.Context(cli)))


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_a_help_with_an_example_of_itself(name: str) -> None:
    own = CliRunner().invoke(cli, [*name.split()[1:], "--help"], prog_name="tfx-edge")
    assert own.exit_code == 0
    assert f"Example: {name}" in own.output


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - {"tfx-edge completion", "tfx-edge demo"}))
def test_each_command_can_tell_what_it_did_as_json(name: str) -> None:
    assert "--json" in {flag for option in COMMANDS[name].params for flag in option.opts}


@pytest.mark.skipif(shutil.which("bash") is None, reason="asks bash")
def test_bash_completes_commands_and_options() -> None:
    script = """
        eval "$(tfx-edge completion bash 2>/dev/null)"
        COMP_WORDS=(tfx-edge cha) COMP_CWORD=1; _tfx_edge_completion tfx-edge; echo "${COMPREPLY[@]}"
        COMPREPLY=(); COMP_WORDS=(tfx-edge channel tick --key) COMP_CWORD=3; _tfx_edge_completion tfx-edge; echo "${COMPREPLY[@]}"
    """
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    run = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env={"PATH": path, "LC_ALL": "C.UTF-8"}, check=True)
    assert run.stdout.split() == ["channel", "--keyring"]


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
