"""Access, limits and answers of the server; the answers are those of the functions."""

from __future__ import annotations

import json
import re
import shutil
import socket
import threading
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ssdvae.app.options import ExploreOptions
from ssdvae.cli import main
from ssdvae.data.events import to_document, to_event
from ssdvae.data.readers import write_jsonl
from ssdvae.inference.embedding import embed
from ssdvae.inference.forecast import next_events
from ssdvae.inference.generation import generate
from ssdvae.inference.infill import fill_documents
from ssdvae.inference.options import (
    EmbedOptions,
    ForecastOptions,
    GenerateOptions,
    InferOptions,
    SurprisalOptions,
)
from ssdvae.inference.posterior import infer_documents
from ssdvae.inference.surprisal import score_documents
from ssdvae.io.errors import UserError
from ssdvae.io.records import to_json
from ssdvae.models.base import Model
from ssdvae.models.hub import SCRIPTS
from tests.alike import assert_alike
from tests.app.conftest import Served, serving
from tests.report.conftest import FRAME, WORD, documents

EVENTS = ["chased ann dog", "caught bob", "tried eve cat"]


def test_the_answers_are_those_of_the_functions(served: Served, runs: list[Path]) -> None:
    documents: list[Any] = [EVENTS, EVENTS[:1], [{"verb": "met", "subj": "ann"}]]
    model, read = Model.read(runs[0]), [to_document(d, str(n)) for n, d in enumerate(documents, start=1)]
    expected = [d.to_record() for d in infer_documents(model, read, **InferOptions().values())]
    found = served.ask("/api/infer", {"documents": documents}).json["documents"]
    for mine, theirs in zip(found, expected, strict=True):
        assert [e["frame"] for e in mine["events"]] == [e["frame"] for e in theirs["events"]]
        for a, b in zip(mine["events"], theirs["events"], strict=True):
            assert a["probability"] == pytest.approx(b["probability"], abs=1e-5)
    body = {"documents": documents}
    asked_of: tuple[tuple[str, Iterable[Any]], ...] = (
        ("score", score_documents(model, read, frames=SurprisalOptions().frames)),
        ("embed", embed(model, read, **EmbedOptions().values())),
        ("next", next_events(model, read, **ForecastOptions().values())),
        ("fill", fill_documents(model, read, **ForecastOptions().values())),
    )
    for operation, answers in asked_of:
        found = served.ask(f"/api/{operation}", body).json["documents"]
        assert_alike(found, [json.loads(to_json(one.to_record())) for one in answers], abs=1e-3)
    given = {"documents": [EVENTS[:1]], "given": {"frame": "Trial", "verb": "tried"}, "top": 3}
    (told,) = served.ask("/api/next", given).json["documents"]
    assert {event["verb"] for event in told["events"]} == {"tried"}
    (filled,) = served.ask("/api/fill", {"documents": [[EVENTS[0], None, "tried ?"]]}).json["documents"]
    assert [hole["event"] for hole in filled["holes"]] == [2, 3]
    asked = {"seed_events": EVENTS[:1], "events": 2, "scripts": 2}
    scripts = served.ask("/api/generate", asked).json["scripts"]
    options = GenerateOptions(events=2, scripts=2)
    written = generate(model, options, seed_events=[to_event(EVENTS[0])])
    assert [s["log_prob"] for s in scripts] == pytest.approx([s.log_prob for s in written], abs=1e-4)


def test_who_asks_about_strange_words_is_warned(served: Served) -> None:
    strange = [["xyzzy plugh ann", "caught frobozz grue"]]
    for operation in ("infer", "score", "next", "fill", "embed"):
        assert "4 of 6 words" in served.ask(f"/api/{operation}", {"documents": strange}).json["warning"]
        assert "warning" not in served.ask(f"/api/{operation}", {"documents": [EVENTS]}).json
    assert "4 of 6" in served.ask("/api/generate", {"seed_events": strange[0], "events": 1}).json["warning"]
    for view in ("read", "next"):
        assert "4 of 6 words" in served.ask(f"/{view}?{urlencode([('e', e) for e in strange[0]])}").text
        assert "ssdvae train" not in served.ask(f"/{view}?{urlencode([('e', e) for e in EVENTS])}").text


def test_many_at_once_get_what_they_would_get_alone(served: Served) -> None:
    bodies = [{"documents": [EVENTS[: 1 + n % 3]] * (1 + n % 2)} for n in range(50)]
    alone = [served.ask("/api/infer", body).json for body in bodies[:6]]
    with ThreadPoolExecutor(50) as clients:
        together = list(clients.map(lambda body: served.ask("/api/infer", body), bodies))
    assert {reply.status for reply in together} == {200}
    for n, reply in enumerate(together):
        for mine, theirs in zip(reply.json["documents"], alone[n % 6]["documents"], strict=True):
            for a, b in zip(mine["events"], theirs["events"], strict=True):
                assert (a["frame"], a["probability"]) == (
                    b["frame"],
                    pytest.approx(b["probability"], abs=1e-5),
                )


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        (
            "/api/infer",
            {"documents": [["met ann"] * 51]},
            422,
            "51 events in one request, expected 50 at most",
        ),
        ("/api/infer", {"documents": [["a b c d e f g"]]}, 422, "expected"),
        ("/api/infer", {"documents": 3}, 422, "--documents: found 3, expected documents"),
        ("/api/infer", {"documents": [], "run": "other"}, 422, "no model 'other'"),
        ("/api/infer", {"documents": [], "file": "/etc/passwd"}, 422, "file"),
        ("/api/infer", b"{", 422, "JSON"),
        ("/api/infer", {"documents": [["x" * 5000]]}, 413, "more than 4,000 bytes"),
        ("/api/infer", [], 422, "expected an object"),
        ("/api/infer", {}, 422, "--documents: found nothing, expected documents"),
        ("/api/infer", {"documents": [], "topp": 3}, 422, "did you mean 'top'?"),
        (
            "/api/infer",
            {"documents": [], "top": 0},
            422,
            "--top: found 0, expected a whole number, at least 1",
        ),
        ("/api/next", {"documents": [], "beam": "x"}, 422, "--beam: found 'x', expected a whole number"),
        ("/api/next", {"documents": [], "given": ["Trial"]}, 422, "--given: found ['Trial'], expected"),
        ("/api/generate", {"seed_events": ["met ann"], "events": 10_000}, 422, "found work of 100,010"),
        ("/api/generate", {"seed_events": ["met ann"], "frames": ["Nonesuch"]}, 422, "Nonesuch"),
        ("/api/frames/Nonesuch", None, 422, "Nonesuch"),
        ("/api/frames/Trial?top=many", None, 422, "--top: found 'many', expected a whole number"),
        ("/api/documents?count=0", None, 422, "--count: found '0', expected a whole number, from 1 to 100"),
        ("/api/documents?found=1", None, 422, "no option 'found'"),
        ("/api/nothing", None, 404, ""),
    ],
)
def test_what_cannot_be_answered_is_said(
    limited: Served, path: str, body: Any, status: int, words: str
) -> None:
    reply = limited.ask(path, body)
    assert reply.status == status
    assert words in reply.json["detail"]


@pytest.fixture(scope="module")
def limited(runs: list[Path]) -> Any:
    with serving(runs[:1], max_events=50, max_bytes=4_000, spacy_model="no_such_model") as found:
        yield found


def test_a_body_that_does_not_say_how_long_it_is_is_measured(limited: Served) -> None:
    """In chunks, so that only what has come tells how large it is."""
    with socket.create_connection(("127.0.0.1", limited.port), timeout=60) as client:
        host = f"Host: 127.0.0.1:{limited.port}\r\n"
        head = f"POST /api/infer HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n"
        client.sendall(head.encode() + b"1000\r\n" + b"x" * 4096 + b"\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 413")


def test_who_takes_too_long_is_told_so(runs: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()
    monkeypatch.setattr("ssdvae.app.explorer.infer_documents", lambda *_, **__: [let_go.wait(60)])
    with serving(runs[:1], seconds=0.1) as hurried:
        reply = hurried.ask("/api/infer", {"documents": [EVENTS]})
        assert (reply.status, reply.headers["retry-after"]) == (503, "1")
        assert hurried.ask("/read?" + urlencode([("e", EVENTS[0])])).status == 503
        let_go.set()


def test_other_names_and_other_sites_are_refused(served: Served) -> None:
    """A name that was made to point to this machine, and a page of another site."""
    assert served.ask("/read", Host="evil.example").status == 421
    assert served.ask("/read", Host=f"evil.example:{served.port}").status == 421
    assert served.ask("/read", Host=f"localhost:{served.port}").status == 200
    body = {"documents": [EVENTS]}
    assert served.ask("/api/infer", body, Origin="https://evil.example").status == 403
    assert served.ask("/api/infer", body, Origin=served.link).status == 200
    # What a page can send without asking first is not taken for JSON.
    assert served.ask("/api/infer", body, Content_Type="text/plain").status == 422
    assert "access-control-allow-origin" not in served.ask("/api/models").headers


def test_others_need_the_token(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match="--token"):
        ExploreOptions(host="0.0.0.0")
    with pytest.raises(UserError, match="12 or more"):
        ExploreOptions(host="0.0.0.0", token="short")
    token = "a long & odd token"
    with serving(runs[:1], host="0.0.0.0", token=token) as open_to_all:
        for path in ("/read", "/docs", "/openapi.json", "/api/models", "/assets/app.js", "/nothing"):
            assert open_to_all.ask(path).status == 401
            assert open_to_all.ask(path, Authorization="Bearer wrong").status == 401
        assert open_to_all.ask("/api/models", Authorization=f"Bearer {token}").status == 200
        assert open_to_all.ask(f"/read?token={quote(token[:-1])}").status == 401
        entered = open_to_all.ask(f"/read?e=met&token={quote(token)}")
        assert (entered.status, entered.headers["location"]) == (303, "/read?e=met")
        cookie = entered.headers["set-cookie"]
        assert "HttpOnly" in cookie
        assert "samesite=strict" in cookie.lower()
        assert open_to_all.ask("/read", Cookie=cookie.partition(";")[0]).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../../../../../../etc/passwd",
        "/assets/..%2f..%2f..%2fetc%2fpasswd",
        "/assets/%2e%2e/server.py",
        "/assets//etc/passwd",
        "/assets/server.py",
        "/documents?documents=/etc/passwd",
        "/read?e=/etc/passwd&f=file:///etc/passwd",
        "/frames?q=../../../../etc/passwd",
        "/api/frames/..%2f..%2f..%2f..%2fetc%2fpasswd",
    ],
)
def test_no_file_of_the_machine_can_be_read(served: Served, path: str) -> None:
    reply = served.ask(path)
    assert "root:" not in reply.text
    assert "import" not in reply.text or reply.status != 200


def test_hostile_words_are_text_everywhere(served: Served) -> None:
    pages = [
        "/read?" + urlencode([("e", f"{WORD} {WORD}"), ("f", "")]),
        "/read?" + urlencode([("e", "met"), ("f", FRAME + "?")]),
        "/next?" + urlencode([("e", f"{WORD} ann"), ("go", "1"), ("pin", FRAME)]),
        "/next?" + urlencode([("e", "met"), ("pin", WORD)]),
        "/frames?" + urlencode([("q", FRAME)]),
        "/frames?" + urlencode([("q", WORD)]),
        "/frames?" + urlencode([("q", WORD + "?")]),
        "/documents?" + urlencode([("frame", FRAME), ("words", WORD)]),
        "/documents?" + urlencode([("run", WORD)]),
    ]
    for path in pages:
        reply = served.ask(path)
        assert reply.status in (200, 422)
        if reply.status == 200:
            assert "<img" not in reply.text
            assert WORD not in reply.text.replace('<script src="', "")
            assert reply.text.count("<script") == 2
            assert WORD in unescape(reply.text) or FRAME in unescape(reply.text).replace("<wbr>", "")
        policy = reply.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from(["e", "f", "run", "q", "pin", "page", "seed", "go"]), st.text()), max_size=8
    )
)
def test_any_address_is_answered_or_refused(served: Served, query: list[tuple[str, str]]) -> None:
    text = urlencode(query, errors="replace")
    for view in ("read", "next", "frames", "documents"):
        assert served.ask(f"/{view}?{text}").status in (200, 422)


def test_every_link_of_every_view_leads_somewhere(served: Served) -> None:
    script = urlencode([("e", EVENTS[0]), ("f", ""), ("e", EVENTS[1]), ("f", "")])
    for path in (
        f"/read?{script}",
        f"/next?{script}&go=1",
        "/frames",
        "/frames?q=Trial",
        "/documents",
        "/docs",
    ):
        reply = served.ask(path)
        assert reply.status == 200
        for href in set(re.findall(r'href="(/[^"]*)"', reply.text)):
            assert served.ask(unescape(href)).status == 200, href


def test_the_reference_names_every_operation_and_asks_no_other_host(served: Served) -> None:
    description = served.ask("/openapi.json").json
    page = served.ask("/docs").text
    operations = [(m.upper(), path) for path, some in description["paths"].items() for m in some]
    assert {"/api/infer", "/api/generate", "/api/models"} <= {path for _, path in operations}
    for method, path in operations:
        assert f"{method} {path}" in page
    assert not re.search(r"https?://(?!127)", page)


def test_documents_of_a_file_or_none(runs: list[Path], tmp_path: Path) -> None:
    file = tmp_path / "named.jsonl"
    file.write_text('{"id": "mine", "events": [{"verb": "chased", "subj": "zoe"}]}\n')
    with serving(runs, documents=file) as named:
        assert "named.jsonl" in named.ask("/documents").text
        found = named.ask("/api/documents?words=zoe").json
        assert [document["id"] for document in found["documents"]] == ["mine"]
        assert str(tmp_path) not in named.ask("/documents").text
        found = named.ask("/api/documents?anomalies=1").json
        assert found["found"] == 1
        # The second model infers no frames, which is said.
        assert "infers no frames" in named.ask("/documents?run=rnnlm").text


def test_frames_of_a_file_and_of_scripts_where_there_are_no_documents(
    runs: list[Path], tmp_path: Path
) -> None:
    file, packed = tmp_path / "named.jsonl", tmp_path / "packed"
    file.write_text('{"id": "mine", "events": [{"verb": "tried", "subj": "zoe"}, {"verb": "jailed"}]}\n')
    with serving(runs[:1], documents=file) as named:
        assert "Trial" in named.ask("/frames?q=tried").text
    shutil.copytree(runs[0], packed, ignore=shutil.ignore_patterns("config.yaml"))
    write_jsonl(packed / SCRIPTS, documents(9))
    with serving([packed]) as alone:
        page = alone.ask("/frames").text
        assert "the model wrote by itself" in page
        assert "Trial" in page
        assert "name some at the start" in alone.ask("/documents").text


def test_two_models_answer_side_by_side_and_answers_are_saved(runs: list[Path], tmp_path: Path) -> None:
    packed = tmp_path / "packed"
    shutil.copytree(runs[0], packed)
    (packed / "README.md").write_text("---\nlicense: mit\n---\n# A card\n\n<script>alert(3)</script>\n")
    events = [("e", "chased ann dog"), ("e", "?"), ("e", "tried eve")]
    with serving([packed, runs[1]]) as both:
        page = both.ask(f"/fill?{urlencode([*events, ('beside', 'rnnlm')])}").text
        assert page.count("by both sides") == 2
        assert "<h2>rnnlm</h2>" in page
        page = both.ask(f"/next?{urlencode([*events[:1], ('beside', 'rnnlm')])}").text
        assert page.count("Probabilities:") == 2
        page = both.ask(f"/read?{urlencode([*events[:1], ('beside', 'rnnlm')])}").text
        assert "has no frames" in page
        assert page.count('class="belief"') == 1  # the first model has answered
        page = both.ask(f"/similar?{urlencode([events[0], events[2]])}").text
        assert [page.count(f"<caption>Events like “{text}") for text in ("chased", "tried")] == [1, 1]
        assert "chased" in page
        for view in ("read", "next", "similar", "frames", "documents"):
            asked = urlencode([*events[:1], ("format", "json")])
            assert both.ask(f"/{view}?{asked}").json, view
            table = both.ask(f"/{view}?{asked.replace('json', 'csv')}")
            assert "attachment" in table.headers["content-disposition"]
            assert len(table.text.splitlines()) > 1, view
        card = both.ask("/card").text
        assert "<h1>A card</h1>" in card
        assert "<script>alert(3)" not in card
        assert "mit" not in card
        # What the model does not know is said.
        page = both.ask("/read?e=zzz+ann").text
        assert "is unknown to the model: its frame is guessed from the other words" in page
        assert re.search(r"Guesses:.*?/frames\?run=packed&amp;q=", page, re.DOTALL)
        assert "Likely frames" not in page
        assert "<h2>Trial</h2>" in both.ask("/frames?q=trial").text
        assert both.ask("/frames/Trial").status == 307
        refused = both.ask("/nothing")
        assert (refused.status, refused.json["detail"]) == (404, "there is no page /'nothing'")
        refused = both.ask("/<b>nothing", Accept="text/html,*/*")  # to somebody who looks at it
        assert (refused.status, "<b>" in refused.text) == (404, False)
        assert '<p role="alert">there is no page' in refused.text


def test_the_command_says_what_is_wrong(runs: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", str(runs[0]), "--host", "0.0.0.0"]) == 2
    assert "--token" in capsys.readouterr().err
    assert main(["explore", str(runs[0]), "--documents", "/nowhere.jsonl"]) == 2
    assert "/nowhere.jsonl" in capsys.readouterr().err
