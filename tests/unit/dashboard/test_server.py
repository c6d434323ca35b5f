"""The dashboard over HTTP: access, and what answers never contain."""

import http.client
import json
import re
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from pumice.dashboard.server import static_files
from pumice.dashboard.serving import ServingOptions, served_dashboard
from pumice.dashboard.sources import StaticSource
from pumice.diagnosis.sources import load_world
from pumice.errors import InputError

ROOT = Path(__file__).resolve().parents[3]
CLUSTER = ROOT / "examples" / "first-cluster.yaml"
TOKEN = "a-token-that-is-long-enough"  # noqa: S105


@pytest.fixture(scope="module")
def source() -> Any:
    return StaticSource(load_world([CLUSTER]), "first")


@pytest.fixture(scope="module")
def place(source: Any) -> Any:
    with served_dashboard(source, ServingOptions()) as url:
        yield url.removeprefix("http://")


@pytest.fixture(scope="module")
def closed(source: Any, tmp_path_factory: Any) -> Any:
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(TOKEN)
    with served_dashboard(source, ServingOptions(token_file=file)) as url:
        yield url.removeprefix("http://")


def ask(place: Any, path: Any, method: Any = "GET", headers: Any = None, body: Any = None) -> Any:
    """Ask until there is an answer: one that takes time is asked for again."""
    found = ask_once(place, path, method, headers, body)
    while found[0] == 202:
        found = ask_once(place, path, method, headers, body)
    return found


def ask_once(place: Any, path: Any, method: Any, headers: Any, body: Any) -> Any:
    with closing(http.client.HTTPConnection(place, timeout=60)) as connection:
        connection.request(method, path, body, headers or {})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read()


def session(place: Any, headers: Any = None) -> Any:
    return json.loads(ask(place, "/api/session", headers=headers)[2])


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.:80", "[::1].evil:80"]
)
def test_a_host_that_is_not_ours_is_refused(place: Any, host: Any) -> None:
    status, _, body = ask(place, "/api/overview", headers={"Host": host})
    assert status == 403
    assert b"resources" not in body


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "[::1]"])
def test_loopback_is_served_under_each_of_its_names(place: Any, name: Any) -> None:
    port = place.rpartition(":")[2]
    assert ask(place, "/api/overview", headers={"Host": f"{name}:{port}"})[0] == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1"])
def test_pages_of_others_are_not_answered(place: Any, origin: Any) -> None:
    assert ask(place, "/api/overview", headers={"Origin": origin})[0] == 403


def test_what_a_browser_says_comes_from_another_site_is_refused(place: Any) -> None:
    headers = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
    assert ask(place, "/api/overview", headers=headers)[0] == 403
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    assert ask(place, "/", headers=visit)[0] == 200  # a link that somebody follows


def test_a_question_needs_what_our_pages_send_along(place: Any) -> None:
    body = json.dumps({"drain": ["node-a"]})
    assert ask(place, "/api/whatif", "POST", body=body)[0] == 403
    wrong = {"X-Pumice-Csrf": "0" * 43}
    assert ask(place, "/api/whatif", "POST", wrong, body)[0] == 403
    right = {"X-Pumice-Csrf": session(place)["csrf"]}
    status, _, found = ask(place, "/api/whatif", "POST", right, body)
    assert status == 200, found
    assert json.loads(found)["changes"] == ["drain node node-a"]


def test_nothing_runs_in_a_page_that_is_not_a_file_of_ours(place: Any) -> None:
    _, headers, body = ask(place, "/jobs/ai/sweep")
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    assert b"<script>" not in body
    assert b"style=" not in body
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"


@pytest.mark.parametrize("served", ["place", "closed"])
@pytest.mark.parametrize("base", ["/static/", "/static/report/", "/static/report/vendor/", "/"])
def test_only_files_of_pages_are_served(
    request: Any, tmp_path: Any, served: str, base: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text("do not hand out")
    place = request.getfixturevalue(served)
    for target in (str(secret), "/dev/zero", str(tmp_path), str(ROOT / "src/pumice/__init__.py")):
        for path in spellings(target):
            status, _, body = ask(place, f"{base}{path}")
            assert status in (400, 403, 404), (path, status)
            assert b"do not hand out" not in body


def spellings(target: str) -> list[str]:
    """Write an absolute path as attackers do."""
    up = "/".join([".."] * 12)
    return [
        target,
        target.replace("/", "%2f"),
        target.replace("/", "%252f"),
        target.replace("/", "\\"),
        f"/{target}",
        f"{up}{target}",
        f"{up}{target}".replace(".", "%2e"),
        f"pages/{up}{target}",
        f"./{target}",
        f"app.js{target}",
        f"app.js%00{target}",
        f"file://{target}",
        f"{target}%00.js",
        f"vendor/{target}",
    ]


@pytest.mark.parametrize(
    "path",
    [
        *("", "server.py", "../server.py", "%2e%2e/server.py", "report/../../__init__.py"),
        *("report/page.py", "report/report.html", "web/app.js", "pages", "pages/", "app.js/"),
        *("./app.js", "pages/../app.js", "//app.js", "APP.JS", "app.js%00", "app.js%20", "app.js."),
    ],
)
def test_a_file_has_one_name(place: Any, path: Any) -> None:
    assert ask(place, f"/static/{path}")[0] == 404


@pytest.mark.parametrize("served", ["place", "closed"])
def test_every_file_that_a_page_asks_for_is_served_before_and_after_login(
    request: Any, served: str
) -> None:
    place = request.getfixturevalue(served)
    found = {name: ask(place, f"/static/{name}") for name in static_files()}
    assert all(status == 200 for status, _, _ in found.values())
    assert {name.rpartition(".")[2] for name in found} == {"js", "css", "svg", "html"}
    for name in re.findall(rb'"/static/([^"]+)"', found["index.html"][2]):
        assert name.decode() in found
    script = found["app.js"]
    assert script[1]["Content-Type"] == "text/javascript; charset=utf-8"
    assert ask(place, "/")[2] == found["index.html"][2]


def test_a_document_that_has_not_changed_is_not_sent_again(place: Any) -> None:
    _, headers, _ = ask(place, "/api/queues")
    status, _, body = ask(place, "/api/queues", headers={"If-None-Match": headers["ETag"]})
    assert (status, body) == (304, b"")


def test_bad_questions_are_answered_with_a_sentence(place: Any) -> None:
    headers = {"X-Pumice-Csrf": session(place)["csrf"]}
    for body, words in (
        ("no json", "JSON"),
        ("[]", "JSON object"),
        ('{"settings": "x"}', "list of texts"),
        ('{"settings": ["queue/nowhere.weight=2"]}', "nowhere"),
        ('{"drain": ["node-z"]}', "node-z"),
        ('{"surprise": 1}', "surprise"),
        ("{}", "a job or a change"),
        ('{"manifest": "kind: ["}', ""),
    ):
        status, _, found = ask(place, "/api/whatif", "POST", headers, body)
        assert status == 422, (body, found)
        assert words in json.loads(found)["problem"]


def test_what_is_not_there_is_not_found(place: Any) -> None:
    for path in ("/api/jobs/ai/nobody", "/api/nodes/nowhere", "/api/cycles/99999", "/nowhere"):
        assert ask(place, path)[0] == 404, path


def test_without_the_token_nobody_sees_anything(closed: Any) -> None:
    for path in ("/api/session", "/api/overview", "/api/jobs", "/api/snapshot", "/api/news"):
        assert ask(closed, path)[0] == 401, path
        assert ask(closed, path, headers={"Authorization": "Bearer wrong"})[0] == 401, path
        assert ask(closed, path, headers={"Cookie": "pumice_session=forged"})[0] == 401, path
    assert ask(closed, "/")[0] == 200  # the page that asks for it
    assert ask(closed, "/api/overview", headers={"Authorization": f"Bearer {TOKEN}"})[0] == 200


def test_logging_in_gives_a_cookie_that_scripts_cannot_read(closed: Any) -> None:
    assert ask(closed, "/api/login", "POST", body='{"token": "wrong"}')[0] == 401
    status, headers, _ = ask(closed, "/api/login", "POST", body=json.dumps({"token": TOKEN}))
    assert status == 200
    cookie = headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert TOKEN not in cookie
    mine = {"Cookie": cookie.partition(";")[0]}
    found = session(closed, mine)
    out = {**mine, "X-Pumice-Csrf": found["csrf"]}
    assert ask(closed, "/api/logout", "POST", {**mine, "X-Pumice-Csrf": "forged"})[0] == 403
    assert ask(closed, "/api/logout", "POST", out)[0] == 200
    assert ask(closed, "/api/overview", headers=mine)[0] == 401


def test_a_cluster_is_not_shown_to_other_machines_without_tls_and_a_login(tmp_path: Any) -> None:
    with pytest.raises(InputError, match="tls-cert"):
        ServingOptions(listen="192.0.2.1").check()
    cert = tmp_path / "cert"
    with pytest.raises(InputError, match="token-file"):
        ServingOptions(listen="192.0.2.1", tls_cert=cert, tls_key=cert).check()
    short = tmp_path / "short"
    short.write_text("secret")
    with pytest.raises(InputError, match="16 characters"):
        ServingOptions(token_file=short).token()


def test_no_answer_holds_environment_values_or_commands(tmp_path: Any) -> None:
    text = CLUSTER.read_text().replace(
        "{name: main", "{name: main, command: [hush-command], env: [{name: A, value: hush-value}]"
    )
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    assert "hush-value" in text
    with served_dashboard(StaticSource(load_world([file]), "x"), ServingOptions()) as url:
        place = url.removeprefix("http://")
        headers = {"X-Pumice-Csrf": session(place)["csrf"]}
        reported = json.loads(ask(place, "/api/jobs/ai/sweep/why?helps")[2])
        bodies = [
            ask(place, path)[2]
            for path in (
                *("/api/overview", "/api/jobs", "/api/jobs/ai/sweep", "/api/jobs/ai/sweep/why"),
                *("/api/jobs/ai/sweep/why?helps", "/api/nodes/node-a", "/api/snapshot"),
                *("/api/order", "/api/cycles/1", "/api/queues"),
            )
        ]
        for remedy in reported["remedies"]:
            asked = json.dumps({"job": "ai/sweep", "remedy": remedy["text"]})
            status, _, body = ask(place, "/api/whatif", "POST", headers, asked)
            assert status == 200, body
            bodies.append(body)
        assert len(bodies) > 10
        assert all(b"hush" not in body for body in bodies)


def test_an_unknown_page_shows_people_where_to_go_and_programs_the_status(place: Any) -> None:
    status, headers, body = ask(place, "/nowhere/at/all")
    assert (status, headers["Content-Type"]) == (404, "text/html; charset=utf-8")
    assert b"/static/app.js" in body
    for path in ("/api/nowhere", "/static/nothing.js"):
        status, headers, body = ask(place, path)
        assert status == 404
        assert json.loads(body)["problem"]


@pytest.mark.parametrize("field", ["objectsFrom: [{}]", "objects: []\nconfFrom: {}"])
def test_a_question_names_no_file(place: Any, tmp_path: Any, field: Any) -> None:
    secret = tmp_path / "secret.yaml"
    secret.write_text("- do not hand out\n")
    headers = {"X-Pumice-Csrf": session(place)["csrf"]}
    body = json.dumps({"manifest": field.format(secret)})
    status, _, found = ask(place, "/api/whatif", "POST", headers, body)
    assert status == 422
    assert "no names of files in a text" in json.loads(found)["problem"]


@pytest.mark.parametrize("at", ["9" * 5000, "-1", "x", "1.5", "%D9%A3", "1e3"])
def test_a_cycle_is_named_by_a_number(place: Any, at: Any) -> None:
    for path in (f"/api/jobs?at={at}", f"/api/order?at={at}", f"/api/cycles/{at}"):
        status, _, body = ask(place, path)
        assert status == 400, path
        assert "the number of a cycle" in json.loads(body)["problem"]


@pytest.mark.parametrize(
    "name", ["Authorization", "Cookie", "X-Pumice-Csrf", "Origin", "Accept", "X-Other"]
)
def test_headers_that_are_no_text_are_refused(closed: Any, name: Any) -> None:
    for method, path in (("GET", "/api/overview"), ("POST", "/api/whatif"), ("GET", "/")):
        headers = {name: b"Bearer \xff\xfe"}
        assert ask(closed, path, method, headers)[0] == 400


def test_a_wrong_token_takes_its_time_however_it_is_sent(closed: Any) -> None:
    for method, path, headers, body in (
        ("GET", "/api/overview", {"Authorization": "Bearer wrong"}, None),
        ("GET", "/", {"Authorization": "Bearer wrong"}, None),
        ("POST", "/api/login", None, '{"token": "wrong"}'),
        ("POST", "/api/login", None, '{"token": ""}'),
    ):
        started = time.monotonic()
        ask(closed, path, method, headers, body)
        assert time.monotonic() - started > 0.4, path
    started = time.monotonic()
    assert ask(closed, "/api/session", headers={"Authorization": f"Bearer {TOKEN}"})[0] == 200
    assert time.monotonic() - started < 0.4


def test_few_tokens_are_tried_at_once_and_a_known_one_does_not_wait(closed: Any) -> None:
    right = {"Authorization": f"Bearer {TOKEN}"}
    assert ask(closed, "/api/session", headers=right)[0] == 200
    started = time.monotonic()
    with ThreadPoolExecutor(120) as pool:
        wrong = {"Authorization": "Bearer wrong"}
        tried = [pool.submit(ask, closed, "/api/session", "GET", wrong) for _ in range(100)]
        time.sleep(0.3)
        assert ask(closed, "/api/session", headers=right)[0] == 200
        found = Counter(each.result()[0] for each in tried)
    assert set(found) == {401, 429}
    assert found[401] <= 16 * (time.monotonic() - started) + 8
