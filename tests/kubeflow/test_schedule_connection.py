"""What goes wrong between the command and a server: one line each, and no secret in it."""

import logging
import socket
import ssl
import subprocess

import pytest
from kfp_server import KfpServer

from tfx_edge.kubeflow.schedule.connection import Credentials, Patience, ServerError
from tfx_edge.kubeflow.schedule.server import Server
from tfx_edge.schemas import EdgeError

QUICK = Patience(connect=2, read=2, retries=2, backoff=0.01)
TOKEN = "tok-3f9a"


def ask(host, credentials=None, patience=QUICK):
    return Server(host, credentials, patience=patience).recurring_runs()


def error_of(host, credentials=None, patience=QUICK):
    with pytest.raises(ServerError) as caught:
        ask(host, credentials, patience)
    text = str(caught.value)
    assert "\n" not in text and host in text
    return text


def failing(status, times=99, kind="application/json", body=b'{"message": "because of this"}', headers=None):
    left = [times]

    def hook(*_):
        left[0] -= 1
        return (status, kind, body, headers) if left[0] >= 0 else None

    return hook


@pytest.fixture
def server():
    with KfpServer() as started:
        yield started


@pytest.mark.parametrize(
    ("status", "told"), [(401, "KFP_TOKEN"), (403, "rights"), (404, "--host"), (409, "exists already"), (500, "ml-pipeline")]
)
def test_a_refusal_says_what_to_do_and_is_not_tried_again(server, status, told):
    server.failures.append(failing(status))
    text = error_of(server.host)
    assert str(status) in text and told in text and "because of this" in text
    assert len(server.log) == 1


@pytest.mark.parametrize("status", [429, 502, 503, 504])
def test_a_busy_server_is_asked_again(server, status):
    server.failures.append(failing(status, times=2))
    assert ask(server.host) == [] and len(server.log) == 3


def test_retrying_ends(server):
    server.failures.append(failing(503))
    assert "503" in error_of(server.host) and len(server.log) == 3


def test_a_broken_connection_is_tried_again(server):
    left = [1]
    server.failures.append(lambda *_: "drop" if (left.append(left.pop() - 1) or left[0]) >= 0 else None)
    assert ask(server.host) == [] and len(server.log) == 2


@pytest.mark.parametrize("answer", ["drop", (503, "application/json", b"{}"), (503, "application/json", b"{}", {"retry-after": "0"})])
def test_what_would_start_twice_is_not_sent_twice(server, answer):
    server.after.append(lambda method, _: answer if method == "POST" else None)
    with pytest.raises(ServerError):
        Server(server.host, patience=QUICK).create_experiment("night")
    assert len(server.writes) == 1


def test_what_was_surely_not_carried_out_is_sent_again(server):
    server.failures.append(failing(429, times=1))
    Server(server.host, patience=QUICK).create_experiment("night")
    assert len(server.writes) == 2 and len(server.experiments) == 2


def test_an_unreachable_server():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"http://127.0.0.1:{free.getsockname()[1]}"
    assert "can't be reached" in error_of(host)


def test_a_silent_server():
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        host = f"http://127.0.0.1:{silent.getsockname()[1]}"
        assert "didn't answer in time" in error_of(host, patience=Patience(connect=1, read=0.1, retries=1, backoff=0))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return folder


def test_tls_needs_a_known_authority(certificate):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate / "cert.pem", certificate / "key.pem")
    with KfpServer(tls=context) as server:
        assert "--ca-file" in error_of(server.host)
        assert ask(server.host, Credentials(ca_file=certificate / "cert.pem")) == []


@pytest.mark.parametrize(("text", "told"), [(None, "can't be read"), ("no certificate", "no certificate in it; expected PEM")])
def test_a_ca_file_that_cant_be_used_is_told_before_the_server_is_asked(server, tmp_path, text, told):
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)
    with pytest.raises(EdgeError, match=f"--ca-file .*ca.pem: {told}"):
        ask(server.host, Credentials(ca_file=file))
    assert server.log == []


@pytest.mark.parametrize("kind", ["token", "cookie"])
@pytest.mark.parametrize("value", ["", "a\r\nX-Evil: 1", "a\n", "gehe\u00edm", "\udc80"])
def test_a_credential_that_no_header_can_carry_is_refused_without_being_shown(kind, value):
    with pytest.raises(EdgeError, match=f"^{kind} .*give its value alone") as caught:
        Credentials(**{kind: value})
    assert not value or value not in str(caught.value)


def test_https_to_a_plain_server_is_told(server):
    assert "TLS" in error_of(server.host.replace("http:", "https:"))


def test_a_login_page_is_recognized(server):
    server.failures.append(failing(200, kind="text/html", body=b"<html>Log in to Your Account</html>"))
    assert "login page" in error_of(server.host)


def test_a_redirect_to_a_login_is_not_followed_and_shows_no_query():
    with KfpServer(cookie="authservice_session=good") as server:
        text = error_of(server.host, Credentials(cookie="authservice_session=" + TOKEN))
        assert "dex.example/auth" in text and "SECRET" not in text and TOKEN not in text
        assert ask(server.host, Credentials(cookie="authservice_session=good")) == []


def test_a_token_is_sent_and_never_told(caplog):
    caplog.set_level(logging.DEBUG)
    with KfpServer(token=TOKEN) as server:
        assert ask(server.host, Credentials(token=TOKEN)) == []
        wrong = "wrong-" + TOKEN
        assert TOKEN not in error_of(server.host, Credentials(token=wrong))
    assert TOKEN not in caplog.text and TOKEN not in repr(Credentials(token=TOKEN))
