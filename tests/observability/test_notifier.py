"""Notifications over real HTTP on loopback, and to functions: what is told, and what happens where it can't be."""

import json
import logging
import sys
import time
import types
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from webhook_server import free_port, webhook_server

from tfx_edge.observability.notifier import notify
from tfx_edge.observability.notifier.delivery import deliver
from tfx_edge.schemas import ConfigError, Notification, NotifierConfig, PythonHook, Webhook

TOKEN = "T0K3N-abcdefgh"
NOTED = Notification(
    event="not_blessed",
    time=datetime(2030, 1, 2, tzinfo=timezone.utc),
    summary='digits: not blessed: "label=3" lost 0.02',
    pipeline="digits",
    run_id="run-1",
    component="EdgeValidator",
    who="ci@runner",
    size_bytes=24312,
    reasons=("label=3 lost 0.02", "latency"),
)


@pytest.fixture
def hooked(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Delivers to a webhook at a URL, with a token in its path, and returns the problems."""

    def run(url: str, noted: Notification = NOTED, **options: Any) -> list[str]:
        monkeypatch.setenv("HOOK", f"{url}/services/{TOKEN}\n")
        return deliver(NotifierConfig(hooks=(Webhook(url="env:HOOK", **{"timeout_s": 2, **options}),)), noted)

    return run


def test_a_webhook_gets_the_summary_as_json_by_default(hooked: Callable[..., list[str]]) -> None:
    with webhook_server() as server:
        assert hooked(server.url) == []
    [(path, headers, body)] = server.requests
    assert path == f"/services/{TOKEN}" and headers["Content-Type"] == "application/json"
    assert body == {"text": NOTED.summary}


def test_every_text_of_a_body_is_a_template_and_quotes_dont_break_it(hooked: Callable[..., list[str]]) -> None:
    body = {"blocks": [{"text": "$message"}, 3, None], "run": "${run_id}", "price": "$$5"}
    with webhook_server() as server:
        assert hooked(server.url, message="$pipeline/$component: $reasons ($size_bytes B, $channel)", body=body) == []
    [(_, _, posted)] = server.requests
    text = "digits/EdgeValidator: label=3 lost 0.02; latency (24312 B, )"
    assert posted == {"blocks": [{"text": text}, 3, None], "run": "run-1", "price": "$5"}


def test_without_a_body_the_whole_notification_is_posted_with_headers(hooked: Callable[..., list[str]], tmp_path: Path) -> None:
    (tmp_path / "token").write_text("Bearer abcdefgh12345\n")
    with webhook_server() as server:
        assert hooked(server.url, body=None, headers={"X-Team": "edge"}, authorization=f"file:{tmp_path}/token") == []
    [(_, headers, posted)] = server.requests
    assert Notification.model_validate_json(json.dumps(posted)) == NOTED
    assert (headers["X-Team"], headers["Authorization"]) == ("edge", "Bearer abcdefgh12345")


def test_a_hook_gets_the_events_that_it_wants_alone(hooked: Callable[..., list[str]]) -> None:
    with webhook_server() as server:
        hooked(server.url, events=("blessed", "stopped"))
        assert server.requests == []
        hooked(server.url, events=("blessed", "not_blessed"))
        assert len(server.requests) == 1


def test_a_server_in_error_is_asked_again_and_one_that_refuses_isnt(hooked: Callable[..., list[str]]) -> None:
    with webhook_server(statuses=[500, 429, 204]) as server:
        assert hooked(server.url) == [] and len(server.requests) == 3
    with webhook_server(statuses=[503]) as server:
        assert hooked(server.url, retries=1) == ["webhook of env:HOOK: the server answered 503, after 2 attempts"]
    with webhook_server(statuses=[404]) as server:
        assert hooked(server.url) == ["webhook of env:HOOK: the server answered 404, after 1 attempt"]
        assert len(server.requests) == 1


def test_a_redirect_isnt_followed(hooked: Callable[..., list[str]]) -> None:
    with webhook_server() as other, webhook_server(statuses=[302], location=f"{other.url}/elsewhere") as server:
        assert hooked(server.url) == ["webhook of env:HOOK: the server answered 302, after 1 attempt"]
    assert other.requests == []


def test_a_server_that_is_down_or_slow_is_told_of_without_its_url(hooked: Callable[..., list[str]]) -> None:
    [problem] = hooked(f"http://127.0.0.1:{free_port()}", retries=1)
    assert problem == "webhook of env:HOOK: not reached (ConnectionRefusedError, Connection refused), after 2 attempts"
    with webhook_server(silent_s=20) as server:
        [problem] = hooked(server.url, timeout_s=0.2, retries=0)
    assert problem == "webhook of env:HOOK: no answer within 0.2 s, after 1 attempt"


def test_a_server_that_sends_a_byte_now_and_then_is_given_up(hooked: Callable[..., list[str]]) -> None:
    with webhook_server(drips=True) as server:
        start = time.monotonic()
        assert hooked(server.url, timeout_s=0.3, retries=0) == ["hook of env:HOOK: still busy after 1.3 s"]
        assert time.monotonic() - start < 5


def test_hooks_are_told_at_the_same_time_and_one_failure_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    with webhook_server(silent_s=20) as slow, webhook_server() as server:
        monkeypatch.setenv("SLOW", slow.url)
        monkeypatch.setenv("GOOD", server.url)
        hooks = (Webhook(url="env:SLOW", timeout_s=0.5, retries=0), Webhook(url="env:UNSET"), Webhook(url="env:GOOD"))
        problems = deliver(NotifierConfig(hooks=hooks), NOTED)
    assert problems == ["webhook of env:SLOW: no answer within 0.5 s, after 1 attempt", "webhook of env:UNSET: it is empty or not set"]
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "value", ["file:///etc/passwd", "ftp://host/", "hooks.example/T0K", "http:///path", "http://a b/", "http://[::1", "a\nb"]
)
def test_what_is_no_url_is_refused_without_being_shown(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", value)
    [problem] = deliver(NotifierConfig(hooks=(Webhook(url="env:HOOK"),)), NOTED)
    assert problem.startswith("webhook of env:HOOK: ") and value not in problem


@pytest.fixture
def user_module(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("my_hooks")
    monkeypatch.setitem(sys.modules, "my_hooks", module)
    return module


def test_a_function_gets_the_notification(user_module: types.ModuleType) -> None:
    got: list[Notification] = []
    user_module.tell = got.append
    assert deliver(NotifierConfig(hooks=(PythonHook(function="my_hooks.tell"),)), NOTED) == []
    assert got == [NOTED]


def test_a_function_that_raises_hangs_or_isnt_there_is_a_line(user_module: types.ModuleType) -> None:
    def fails(_: Notification) -> None:
        raise SystemExit("https://me:pw12345@host/ is down\n")

    user_module.fails, user_module.hangs = fails, lambda _: time.sleep(5)
    hooks = (
        PythonHook(function="my_hooks.fails"),
        PythonHook(function="my_hooks.hangs", timeout_s=0.2),
        PythonHook(function="my_hooks.none"),
    )
    problems = deliver(NotifierConfig(hooks=hooks), NOTED)
    assert problems[0] == "hook of my_hooks.fails: SystemExit: https://[hidden]@host/ is down"
    assert problems[1] == "hook of my_hooks.hangs: still busy after 0.2 s"
    assert problems[2].startswith("hook my_hooks.none: can't be imported") and len(problems) == 3


def test_the_environment_names_the_file_and_what_fails_is_logged_without_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    file = tmp_path / "notify.json"
    monkeypatch.delenv("TFX_EDGE_NOTIFY", raising=False)
    notify(NOTED)
    assert caplog.text == ""
    monkeypatch.setenv("TFX_EDGE_NOTIFY", str(file))
    notify(NOTED)
    assert f"{file}: can't be read (No such file or directory)" in caplog.text
    file.write_text(f'{{"hooks": [{{"kind": "webhook", "url": "https://hooks.example/{TOKEN}"}}]}}')
    notify(NOTED)
    assert "Webhook: url: expected env:NAME of a variable or file:/PATH" in caplog.text
    file.write_text(f'{{"hooks": [{{"knd": "webhook", "url": "https://hooks.example/{TOKEN}"}}]}}')
    notify(NOTED)
    monkeypatch.setenv("HOOK", f"http://127.0.0.1:{free_port()}/{TOKEN}")
    file.write_text('{"hooks": [{"kind": "webhook", "url": "env:HOOK", "retries": 0}]}')
    notify(NOTED)
    assert f"not told that {NOTED.summary}: webhook of env:HOOK: not reached" in caplog.text
    assert TOKEN not in caplog.text and len(caplog.records) == 4


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"url": f"https://hooks.example/{TOKEN}"}, "url: expected env:NAME"),
        ({"authorization": f"Bearer {TOKEN}"}, "authorization: expected env:NAME"),
        ({"headers": {"Authorization": TOKEN}}, "header 'Authorization' holds secrets"),
        ({"headers": {"X-Api-Key": TOKEN}}, "'X-Api-Key' looks like a secret"),
        ({"headers": {"X-A": "b\r\nX-C: d"}}, "expected a name as HTTP has it and a value of one line"),
        ({"body": {"token": TOKEN}}, "'token' looks like a secret"),
        ({"message": "$nme"}, "unknown field $nme; there are $event"),
        ({"body": {"a": [{"b": "5 $"}]}}, "a lone $ at 2"),
    ],
)
def test_a_config_with_a_secret_or_a_wrong_template_is_refused_without_showing_it(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Webhook(**{"url": "env:HOOK", **fields})
    assert text in str(caught.value) and TOKEN not in str(caught.value)
