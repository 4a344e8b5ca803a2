"""A Kubeflow Pipelines API server over real HTTP: holds state, and checks requests and its own answers by KFP's swagger.

Rules are those of backend/src/apiserver: unique names of pipelines and of versions in one, one trigger, cron by robfig/cron, concurrency
1 to 10, page tokens, grpc-gateway's errors, and that deleting a recurring run kills its unfinished runs.
"""

import email.parser
import email.policy
import json
import re
import threading
import uuid
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import jsonschema
import robfig_cron
import yaml

SWAGGER = Path(__file__).parents[1] / "data" / "kfp" / "kfp_api_single_file.swagger.json"
_PREFIX = "/apis/v2beta1"


class Refused(Exception):
    def __init__(self, status, message):
        super().__init__(message)
        self.status, self.message = status, message


def _strict(schema):
    """Swagger's schemas as JSON Schema that knows no other fields; int64 travels as a string."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(value) for key, value in schema.items()}
    if made.get("type") == "object" and made.get("properties"):
        made.setdefault("additionalProperties", False)
    return made


class KfpServer:
    """Start with `with KfpServer() as server`; `server.host` is its URL, `server.log` what it was asked: (method, path)."""

    def __init__(self, *, tls=None, token=None, cookie=None, page_limit=2):
        self.document = _strict(json.loads(SWAGGER.read_text()))
        self.token, self.cookie, self.page_limit = token, cookie, page_limit
        self.pipelines, self.versions, self.experiments, self.recurring, self.runs = {}, {}, {}, {}, {}
        self.log, self.files, self.killed = [], {}, []
        self.failures = []  # callables (method, path) -> None or (status, content type, body, headers); "drop" closes the connection
        self.after = []  # as failures, but once the request was carried out
        self._now = datetime(2027, 1, 1, tzinfo=timezone.utc)
        handler = type("Handler", (_Handler,), {"server_state": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        scheme = "http"
        if tls is not None:
            self.http.socket = tls.wrap_socket(self.http.socket, server_side=True)
            scheme = "https"
        self.host = f"{scheme}://127.0.0.1:{self.http.server_address[1]}"
        self.experiments["default"] = {"experiment_id": "default", "display_name": "Default", "created_at": self.stamp()}

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def stamp(self):
        self._now += timedelta(seconds=1)
        return self._now.strftime("%Y-%m-%dT%H:%M:%SZ")

    @property
    def writes(self):
        return [entry for entry in self.log if entry[0] != "GET"]

    @property
    def active(self):
        return [run for run in self.recurring.values() if run["status"] == "ENABLED"]

    def check(self, name, body):
        schema = {"$ref": f"#/definitions/{name}", "definitions": self.document["definitions"]}
        try:
            jsonschema.Draft4Validator(schema).validate(body)
        except jsonschema.ValidationError as error:
            raise Refused(400, f"{name}: {error.message}") from None

    def answer(self, method, path, query, body, raw, kind):
        """The body of the answer, and the definition in the swagger that it follows."""
        parts = path.removeprefix(_PREFIX + "/").split("/")
        match method, parts:
            case "GET", ["pipelines", "names", name]:
                return self._one(lambda p: p["display_name"] == name, self.pipelines, name), "v2beta1Pipeline"
            case "POST", ["pipelines"]:
                self.check("v2beta1Pipeline", body)
                if any(p["display_name"] == body["display_name"] for p in self.pipelines.values()):
                    raise Refused(409, f"The name {body['display_name']} already exist")
                return self._add(self.pipelines, "pipeline_id", body), "v2beta1Pipeline"
            case "POST", ["pipelines", "upload_version"]:
                return self._upload(query, raw, kind), "v2beta1PipelineVersion"
            case "GET", ["pipelines", pipeline, "versions"]:
                there = [v for v in self.versions.values() if v["pipeline_id"] == pipeline]
                return self._page(there, "pipeline_versions", query), "v2beta1ListPipelineVersionsResponse"
            case "GET", ["pipelines", pipeline, "versions", version]:
                found = self._one(lambda v: v["pipeline_version_id"] == version, self.versions, version)
                return found, "v2beta1PipelineVersion"
            case "GET", ["experiments"]:
                return self._page(list(self.experiments.values()), "experiments", query), "v2beta1ListExperimentsResponse"
            case "POST", ["experiments"]:
                self.check("v2beta1Experiment", body)
                return self._add(self.experiments, "experiment_id", body), "v2beta1Experiment"
            case "GET", ["recurringruns"]:
                return self._page(list(self.recurring.values()), "recurringRuns", query), "v2beta1ListRecurringRunsResponse"
            case "POST", ["recurringruns"]:
                return self._create_recurring(body), "v2beta1RecurringRun"
            case "POST", ["recurringruns", which] if ":" in which:
                run, _, verb = which.partition(":")
                self._one(lambda r: r["recurring_run_id"] == run, self.recurring, run)
                self.recurring[run]["status"] = {"enable": "ENABLED", "disable": "DISABLED"}[verb]
                return {}, None
            case "DELETE", ["recurringruns", run]:
                self._one(lambda r: r["recurring_run_id"] == run, self.recurring, run)
                del self.recurring[run]
                mine = [r for r in self.runs.values() if r.get("recurring_run_id") == run and r["state"] == "RUNNING"]
                self.killed += [self.runs.pop(r["run_id"])["run_id"] for r in mine]
                return {}, None
            case "GET", ["runs"]:
                return self._page(list(self.runs.values()), "runs", query), "v2beta1ListRunsResponse"
            case "POST", ["runs"]:
                self.check("v2beta1Run", body)
                self._check_source(body)
                return self._add(self.runs, "run_id", {**body, "state": "PENDING"}), "v2beta1Run"
        raise Refused(404, f"Not Found: {method} {path}")

    def fire(self, recurring_id, state="RUNNING"):
        """What the controller does when a schedule is due."""
        made = self._add(self.runs, "run_id", {"display_name": "fired", "recurring_run_id": recurring_id, "state": state})
        return made["run_id"]

    def _add(self, store, key, body):
        made = {**body, key: str(uuid.uuid4()), "created_at": self.stamp()}
        store[made[key]] = made
        return made

    def _one(self, matches, store, name):
        found = next((item for item in store.values() if matches(item)), None)
        if found is None:
            raise Refused(404, f"ResourceNotFoundError: {name} not found")
        return found

    def _page(self, items, field, query):
        size = min(int(query.get("page_size", 20)), self.page_limit)
        for one in json.loads(query["filter"])["predicates"] if "filter" in query else ():
            test = {"EQUALS": lambda a, b: a == b, "IS_SUBSTRING": lambda a, b: b in a}[one["operation"]]
            items = [i for i in items if test(i.get(one["key"], ""), one["stringValue"])]
        try:
            start = int(query.get("page_token") or 0)
        except ValueError:
            raise Refused(400, "InvalidInputError: Invalid package token.") from None
        page = {field: items[start : start + size], "total_size": len(items)}
        return page | ({"next_page_token": str(start + size)} if start + size < len(items) else {})

    def _upload(self, query, raw, kind):
        message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(b"Content-Type: " + kind.encode() + b"\r\n\r\n" + raw)
        part = next(p for p in message.iter_parts() if p.get_param("name", header="content-disposition") == "uploadfile")
        content = part.get_payload(decode=True)
        spec = next(iter(yaml.safe_load_all(content)))
        if spec.get("schemaVersion") != "2.1.0":
            raise Refused(400, "InvalidInputError: unknown template format")
        if query.get("pipelineid") not in self.pipelines:
            raise Refused(400, "Failed to create a pipeline version")
        if any(v["pipeline_id"] == query["pipelineid"] and v["display_name"] == query["name"] for v in self.versions.values()):
            raise Refused(409, "Failed to create a pipeline version")
        about = {"pipeline_id": query["pipelineid"], "display_name": query["name"], "description": query.get("description", "")}
        made = self._add(self.versions, "pipeline_version_id", {**about, "pipeline_spec": spec})
        self.files[made["pipeline_version_id"]] = content
        return made

    def _check_source(self, body):
        reference = body.get("pipeline_version_reference", {})
        version = self.versions.get(reference.get("pipeline_version_id"))
        if version is None or version["pipeline_id"] != reference["pipeline_id"]:
            raise Refused(404, "Failed to fetch a pipeline version")
        known = version["pipeline_spec"].get("root", {}).get("inputDefinitions", {}).get("parameters", {})
        if unknown := body.get("runtime_config", {}).get("parameters", {}).keys() - known.keys():
            raise Refused(400, f"InvalidInputError: parameter {unknown} is not defined")

    def _create_recurring(self, body):
        self.check("v2beta1RecurringRun", body)
        self._check_source(body)
        if not 1 <= int(body.get("max_concurrency", 0)) <= 10:
            raise Refused(400, "The max concurrency of the recurring run is out of range. Support 1-10.")
        trigger = body.get("trigger", {})
        if len(trigger) != 1:
            raise Refused(400, "InvalidInputError: exactly one trigger")
        if body.get("experiment_id") not in self.experiments:
            raise Refused(404, "Experiment not found")
        if "cron_schedule" in trigger:
            try:
                robfig_cron.parse(trigger["cron_schedule"]["cron"])
            except ValueError as error:
                raise Refused(400, f"Schedule cron is not a supported format. Error: {error}") from None
        elif int(trigger["periodic_schedule"].get("interval_second", 0)) < 1:
            raise Refused(400, "Found invalid period schedule interval")
        status = "ENABLED" if body.get("mode") == "ENABLE" else "DISABLED"
        return self._add(self.recurring, "recurring_run_id", {**body, "status": status})


class _Handler(BaseHTTPRequestHandler):
    server_state: KfpServer

    def log_message(self, *_):
        pass

    def _handle(self):
        state = self.server_state
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        state.log.append((self.command, re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", url.path.removeprefix(_PREFIX))))
        kind = self.headers.get("content-type") or ""
        for hook in state.failures:
            if (told := hook(self.command, url.path)) is not None:
                return self._tell(told)
        try:
            if state.token is not None and self.headers.get("authorization") != f"Bearer {state.token}":
                raise Refused(401, "Unauthenticated")
            if state.cookie is not None and self.headers.get("cookie") != state.cookie:
                return self._send(302, "text/html", b"", {"location": "https://dex.example/auth?state=SECRET"})
            body = json.loads(raw) if raw and "json" in kind else {}
            answer, name = state.answer(self.command, url.path, query, body, raw, kind)
            if name is not None:
                state.check(name, answer)
        except Refused as refused:
            body = {"error": refused.message, "code": 3, "message": refused.message, "details": []}
            if url.path.endswith("/upload_version"):  # no grpc-gateway there, so another shape
                body = {"error_message": refused.message, "error_details": refused.message}
            return self._send(refused.status, "application/json", json.dumps(body).encode())
        for hook in state.after:
            if (told := hook(self.command, url.path)) is not None:
                return self._tell(told)
        return self._send(200, "application/json", json.dumps(answer).encode())

    def _tell(self, told):
        if told == "drop":
            self.close_connection = True
            self.connection.close()
            return
        self._send(*told)

    def _send(self, status, kind, body, headers=None):
        self.send_response(status)
        for key, value in {"content-type": kind, "content-length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_DELETE = _handle
