"""Readers of text: what is read stands where it is said to stand, and one bad document costs one document."""

from __future__ import annotations

import csv
import io
import json
import sys
import tarfile
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from concrete.communication.ttypes import Communication
from concrete.metadata.ttypes import AnnotationMetadata
from concrete.situations.ttypes import SituationMention, SituationMentionSet
from concrete.spans.ttypes import TextSpan
from concrete.structure.ttypes import (
    Dependency,
    DependencyParse,
    Section,
    Sentence,
    TaggedToken,
    Tokenization,
    TokenizationKind,
    TokenList,
    TokenRefSequence,
    TokenTagging,
)
from concrete.structure.ttypes import Token as ConcreteToken
from concrete.uuid.ttypes import UUID
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.transport.TTransport import TMemoryBuffer

from ssdvae.data.options import ExtractOptions
from ssdvae.data.readers import Skipped
from ssdvae.extraction.readers import FORMATS, guess_format, inscript, list_files
from ssdvae.extraction.readers.text import with_trees
from ssdvae.extraction.rules import extract_document
from ssdvae.extraction.tree import ParsedDocument, RawDocument, find_spans
from ssdvae.io.errors import DataError, UserError
from ssdvae.io.files import stop_at_first_error
from tests.extraction.mended import MENDED
from tests.extraction.trees import CONSTRUCTIONS, conllu_lines, events_of, rows_of, shown

SENTENCE = "He moved to Beijing in May."
HIT = "The wind hit the ferry."


def read(
    path: Path, settings: ExtractOptions | None = None, format: str | None = None
) -> list[ParsedDocument]:
    """All that a file has, none of it bad."""
    chosen = settings or ExtractOptions()
    choice = FORMATS[format or guess_format(path) or ""]

    def fail(error: DataError) -> None:
        raise error

    return list(with_trees([choice.parse(raw, chosen) for raw in choice.read(path, chosen, fail)], chosen))


def check_places(parsed: ParsedDocument) -> None:
    """The law of all readers: a token is the text at its span."""
    assert parsed.sentences
    for tree in parsed.sentences:
        for token in tree.tokens:
            assert parsed.text[token.start : token.end] == token.form


@given(st.lists(st.text(min_size=1, max_size=3).filter(lambda w: len(w.split()) == 1 and w == w.strip())))
def test_words_are_found_where_they_were_put(words: list[str]) -> None:
    for gap in (" ", "", " \n "):
        text = gap.join(words)
        spans = find_spans(text, words)
        assert spans is not None
        assert [text[start:end] for start, end in spans] == words
    assert find_spans("x" + "".join(words), ["y", *words]) is None
    assert find_spans("x y", ["y"]) is None


# Plain text, in many coats.


@pytest.fixture
def settings(spacy_model: Path) -> ExtractOptions:
    return ExtractOptions(spacy_model=str(spacy_model))


def test_plain_text(tmp_path: Path, settings: ExtractOptions) -> None:
    """Paragraphs are parted, sentences numbered through, and places are those of the file."""
    text = f"{SENTENCE}\n  \n\n{HIT}\r\n\r\n"
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbf" + text.encode())
    [parsed] = read(path, settings)
    assert (parsed.id, parsed.text) == ("a.txt", text)
    check_places(parsed)
    assert events_of(parsed) == ["moved he beijing to", "hit wind ferry None"]
    origins = [event.origin for event in extract_document(parsed, settings).events]
    assert [(o.sentence, text[o.start : o.end]) for o in origins if o] == [(0, "moved"), (1, "hit")]


def test_tables_of_texts(tmp_path: Path, settings: ExtractOptions) -> None:
    rows = [{"id": "x", "text": SENTENCE}, {"id": "y", "text": HIT}]
    with (tmp_path / "a.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, ["id", "text"])
        writer.writeheader()
        writer.writerows(rows)
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    for name in ("a.csv", "a.jsonl", "a.parquet"):
        first, second = read(tmp_path / name, settings)
        assert (first.id, second.id) == ("x", "y")
        assert events_of(first) + events_of(second) == ["moved he beijing to", "hit wind ferry None"]


def test_a_table_without_ids_and_with_another_column(tmp_path: Path, settings: ExtractOptions) -> None:
    (tmp_path / "a.csv").write_text(f"Body,x\n{SENTENCE},1\n")
    (tmp_path / "a.jsonl").write_text(json.dumps({"body": SENTENCE}) + "\n")
    chosen = ExtractOptions(spacy_model=settings.spacy_model, text_column="body")
    assert [p.id for p in read(tmp_path / "a.csv", chosen)] == ["a.csv:2"]
    assert [p.id for p in read(tmp_path / "a.jsonl", chosen)] == ["a.jsonl:1"]
    with pytest.raises(DataError, match="expected the columns text"):
        read(tmp_path / "a.csv", settings)
    with pytest.raises(DataError, match=r"line 1: found None, expected a text\n.*--text-column"):
        read(tmp_path / "a.jsonl", settings)


def test_wikiextractor(tmp_path: Path, settings: ExtractOptions) -> None:
    body = f"Ferries &amp; winds\n\n{HIT}\n{SENTENCE}\n"
    file = tmp_path / "AA" / "wiki_00"
    file.parent.mkdir()
    file.write_text(
        f'<doc id="12" url="https://x.y/?a=1" title="Ferries &amp; winds">\n{body}\n</doc>\n'
        f'<doc id="13" url="" title="Other">\n{HIT}\n</doc>\n'
    )
    first, second = read(file, settings)
    assert (first.id, second.id) == ("12", "13")
    check_places(first)
    # The title is no sentence, and taking it away moves nothing.
    assert events_of(first) == ["hit wind ferry None", "moved he beijing to"]
    assert first.text.index(HIT) == body.index(HIT)
    lines = tmp_path / "wiki_01"
    lines.write_text(json.dumps({"id": "7", "url": "", "title": "T", "text": HIT}) + "\n")
    assert [(p.id, events_of(p)) for p in read(lines, settings)] == [("7", ["hit wind ferry None"])]


def test_what_is_no_wikiextractor_is_said(tmp_path: Path) -> None:
    for text, message in (("hello\n", "line 1: found 'hello"), ('<doc id="1" title="T">\nT\n', "no </doc>")):
        path = tmp_path / "wiki_00"
        path.write_text(text)
        skipped = Skipped()
        assert list(FORMATS["wikiextractor"].read(path, ExtractOptions(), skipped)) == []
        assert message in str(skipped)


def test_a_missing_model_gives_the_command_that_installs_it(tmp_path: Path) -> None:
    for name, download in (("xx_no_such_model", "xx_no_such_model"), ("models/none", "en_core_web_sm")):
        with pytest.raises(UserError) as refused:
            FORMATS["text"].check(ExtractOptions(spacy_model=name))
        assert f"no spaCy model {name!r}" in str(refused.value)
        assert f"python -m spacy download {download}\n" in str(refused.value)
        assert "--spacy-model" in str(refused.value)
        assert "CoNLL-U (.conllu) needs no model" in str(refused.value)


def test_a_model_that_does_not_parse_is_refused(tmp_path: Path) -> None:
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(UserError, match="parses no dependencies"):
        FORMATS["text"].check(ExtractOptions(spacy_model=str(tmp_path / "blank")))


@pytest.mark.parametrize(
    ("format", "package"), [("text", "spacy"), ("conllu", "conllu"), ("concrete", "concrete")]
)
def test_a_missing_package_gives_the_command_that_installs_it(
    format: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(UserError, match=rf"pip install 'ssdvae\[{format}\]'"):
        FORMATS[format].check(ExtractOptions(spacy_model="another_name"))


# MegaWika.


def article(**passage: Any) -> dict[str, Any]:
    tokens = f"{HIT[:-1]} . {SENTENCE[:-1]} .".split()
    usual = {
        "text": [HIT + " ", SENTENCE],
        "en_tokens": {str(number): token for number, token in enumerate(tokens)},
        "parse": [
            {
                "span": [2, 2],
                "label": "Impact",
                "confidence": 0.75,
                "children": [{"span": [0, 1], "label": "Impactor", "children": []}],
            },
            {"span": [4, 4], "label": "Vehicle", "children": []},
            {"span": [7, 7], "label": "Motion", "children": []},
        ],
    }
    return {"article_title": "Ferry", "entries": [{"id": "0", "passage": {**usual, **passage}}]}


@pytest.mark.parametrize("coat", ["as it is", "parse as a string", "list of tokens", "tokens of sentences"])
def test_megawika(coat: str, tmp_path: Path, settings: ExtractOptions) -> None:
    passage = article()["entries"][0]["passage"]
    tokens = list(passage["en_tokens"].values())
    changes: dict[str, dict[str, Any]] = {
        "as it is": {},
        "parse as a string": {"parse": json.dumps(passage["parse"])},
        "list of tokens": {"en_tokens": tokens},
        "tokens of sentences": {"en_tokens": None, "tokens": [tokens[:6], tokens[6:]]},
    }
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(article(**changes[coat])) + "\n")
    [parsed] = read(path, settings, "megawika")
    assert parsed.id == "Ferry/0"
    check_places(parsed)
    events = extract_document(parsed, settings).events
    assert [(shown(e), e.frame, e.probability) for e in events] == [
        ("hit wind ferry None", "Impact", 0.75),
        ("moved he beijing to", "Motion", None),
    ]


def test_megawika_whose_tokens_are_not_its_text(tmp_path: Path, settings: ExtractOptions) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(article(text=["“The wind” hit the ferry."])) + "\n")
    [parsed] = read(path, settings, "megawika")
    assert parsed.text.startswith("The wind hit the ferry .")
    assert extract_document(parsed, settings).events[0].frame == "Impact"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"text": 3}, "found 3 at text"),
        ({"en_tokens": {"a": "b"}}, "found 'a' among the tokens"),
        ({"parse": "{"}, "JSON"),
    ],
)
def test_megawika_gone_wrong(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("\n" + json.dumps(article(**change)) + "\n")
    with pytest.raises(DataError, match=f"line 2: .*{message}"):
        read(path, format="megawika")


# InScript.


def story(*words: str) -> str:
    """A story in the form of Zhai et al.; ``word#label#part`` is labelled, a bar parts pieces."""
    lines = []
    for word in words:
        form, label, part = (*word.split("#"), "", "")[:3]
        first, *others = form.split("|")
        lines.append(f"▁{first} none none {f'#{label}' if label else 'none'} {part or 'none'} none ")
        lines += [f"{other} X X X X X " for other in others]
    return "\n".join([*lines, "<end_of_story>"]) + "\n"


def test_inscript(tmp_path: Path, settings: ExtractOptions) -> None:
    """A label is the frame of the verb that it covers; a particle apart is no label of its own."""
    path = tmp_path / "ferry_inscript"
    hit = ["The", "wind", "h|it#ScrEv_storm_ferry#yes", "the#ScrEv_storm_ferry", "ferry", "|."]
    moved = ["He", "moved#RelNScrEv_ferry#single", "to", "Beijing#Evoking_ferry#single", "in", "May", "|."]
    path.write_text(story(*hit, *moved) + story(*hit[:4], "ferry#ScrEv_storm_ferry#no", "|."))
    first, second = read(path, settings, "inscript")
    assert (first.id, second.id) == ("ferry_inscript:0", "ferry_inscript:1")
    assert (first.text, second.text) == (f"{HIT} {SENTENCE}", HIT)
    check_places(first)
    assert [(first.text[m.start : m.end], m.frame) for m in first.mentions] == [
        ("hit the", "ScrEv_storm_ferry"),
        ("moved", "RelNScrEv_ferry"),
        ("Beijing", "Evoking_ferry"),
    ]
    assert [second.text[m.start : m.end] for m in second.mentions] == ["hit the ferry"]
    events = extract_document(first, settings).events
    assert [(shown(event), event.frame) for event in events] == [
        ("hit wind ferry None", "ScrEv_storm_ferry"),
        ("moved he beijing to", "RelNScrEv_ferry"),
    ]
    path.write_text(
        story(*hit[:3], "the", "ferry#ScrEv_storm_ferry#no", "|.", *hit[:2], "hit#ScrEv_storm_ferry#yes")
    )
    [apart] = read(path, settings, "inscript")
    assert [apart.text[m.start : m.end] for m in apart.mentions] == ["hit", "hit"]


@given(
    st.lists(
        st.tuples(st.sampled_from(["a", "Bc", ".", ",", "n't", "'s", "!", "d's"]), st.sampled_from("01"))
    )
)
def test_labels_of_inscript_stand_at_their_words(words: list[tuple[str, str]]) -> None:
    labelled = [f"{word}#L{number}#single" if on == "1" else word for number, (word, on) in enumerate(words)]
    with TemporaryDirectory() as folder:
        path = Path(folder, "a_inscript")
        path.write_text(story(*labelled))
        raws = list(inscript.read(path, ExtractOptions(), stop_at_first_error))
    text, mentions = inscript.text_and_labels(raws[0].content) if words else ("", [])
    assert "".join(text.split()) == "".join(word for word, _ in words)
    expected = [(word, f"L{number}") for number, (word, on) in enumerate(words) if on == "1"]
    assert [(text[m.start : m.end], m.frame) for m in mentions] == expected


@pytest.mark.parametrize("line", ["▁a none none", "a X X X X X"])
def test_inscript_gone_wrong(line: str, tmp_path: Path) -> None:
    """A bad story costs one story."""
    path, skipped = tmp_path / "a_inscript", Skipped(unit="document")
    path.write_text(f"{line}\n{story('b')}{story('c')}▁d none none none none none\n")
    found = list(FORMATS["inscript"].read(path, ExtractOptions(), skipped))
    assert [(raw.id, raw.line, raw.content) for raw in found] == [
        ("a_inscript:1", 4, [("c", "none", "none")])
    ]
    assert [", line 1: " in skipped.messages[0], ", line 6: " in skipped.messages[1]] == [True, True]
    assert all("expected" in message and "<end_of_story>" in message for message in skipped.messages)


# Concrete.


def communication(tree: str, id: str = "c", frames: tuple[tuple[int, str], ...] = ()) -> Communication:
    """A communication of one sentence, with trees, tags and frames as CoreNLP and SEMAFOR leave them."""
    rows = rows_of(tree)
    text = " ".join(row[0] for row in rows)
    spans = find_spans(text, [row[0] for row in rows])
    assert spans is not None

    def metadata(tool: str) -> AnnotationMetadata:
        return AnnotationMetadata(tool=tool, timestamp=0)

    def tagging(kind: str, column: int) -> TokenTagging:
        tags = [TaggedToken(tokenIndex=i, tag=row[column]) for i, row in enumerate(rows)]
        return TokenTagging(
            uuid=UUID(kind), metadata=metadata("CoreNLP"), taggedTokenList=tags, taggingType=kind
        )

    def parse(tool: str, edges: list[Dependency]) -> DependencyParse:
        return DependencyParse(uuid=UUID(tool), metadata=metadata(tool), dependencyList=edges)

    edges = [
        Dependency(gov=int(r[3]) - 1 if r[3] != "0" else None, dep=i, edgeType=r[4])
        for i, r in enumerate(rows)
    ]
    tokens = [
        ConcreteToken(tokenIndex=i, text=row[0], textSpan=TextSpan(*span))
        for i, (row, span) in enumerate(zip(rows, spans, strict=True))
    ]
    tokenization = Tokenization(
        uuid=UUID("tokens"),
        metadata=metadata("CoreNLP"),
        kind=TokenizationKind.TOKEN_LIST,
        tokenList=TokenList(tokenList=tokens),
        tokenTaggingList=[tagging("POS", 2), tagging("LEMMA", 1)],
        # The collapsed parse is no tree, stands first, and must not be taken.
        dependencyParseList=[
            parse("Stanford CoreNLP col-deps", [Dependency(gov=0, dep=1, edgeType="dep")]),
            parse("Stanford CoreNLP basic-deps", edges),
        ],
    )

    def situations(tool: str, kinds: tuple[tuple[int, str], ...]) -> SituationMentionSet:
        mentions = [
            SituationMention(
                uuid=UUID(f"{tool}{place}"),
                situationType="EVENT",
                situationKind=kind,
                argumentList=[],
                confidence=0.5,
                tokens=TokenRefSequence(tokenIndexList=[place], tokenizationId=UUID("tokens")),
            )
            for place, kind in kinds
        ]
        return SituationMentionSet(uuid=UUID(tool), metadata=metadata(tool), mentionList=mentions)

    sentence = Sentence(uuid=UUID("s"), tokenization=tokenization, textSpan=TextSpan(0, len(text)))
    return Communication(
        id=id,
        uuid=UUID(id),
        type="article",
        text=text,
        metadata=metadata("test"),
        sectionList=[Section(uuid=UUID("x"), kind="passage", sentenceList=[sentence])],
        situationMentionSetList=[
            situations("Propbank parser", tuple((place, "wrong.01") for place, _ in frames)),
            situations("Semafor V3.0.4", frames),
        ],
    )


def packed(comm: Communication) -> bytes:
    buffer = TMemoryBuffer()
    comm.write(TCompactProtocol(buffer))
    return bytes(buffer.getvalue())


@pytest.mark.parametrize("name", CONSTRUCTIONS | MENDED)
def test_constructions_in_concrete(name: str, tmp_path: Path) -> None:
    _, tree, expected = (CONSTRUCTIONS | MENDED)[name]
    (tmp_path / "a.concrete").write_bytes(packed(communication(tree)))
    [parsed] = read(tmp_path / "a.concrete")
    check_places(parsed)
    assert events_of(parsed) == expected


def test_situations_of_framenet_are_frames(tmp_path: Path) -> None:
    tree = CONSTRUCTIONS["coordination"][1]
    (tmp_path / "a.comm").write_bytes(
        packed(communication(tree, frames=((1, "Arriving"), (4, "Finish_game"))))
    )
    [parsed] = read(tmp_path / "a.comm")
    events = extract_document(parsed, ExtractOptions()).events
    assert [(e.head, e.frame, e.probability) for e in events] == [
        ("came", "Arriving", 0.5),
        ("saw", None, None),
        ("won", "Finish_game", 0.5),
    ]


def test_concrete_in_a_row_and_in_archives(tmp_path: Path) -> None:
    data = [packed(communication(CONSTRUCTIONS["passive"][1], id=id)) for id in "abc"]
    (tmp_path / "row.concrete").write_bytes(b"".join(data))
    with (
        tarfile.open(tmp_path / "row.tar.gz", "w:gz") as tar,
        zipfile.ZipFile(tmp_path / "row.zip", "w") as zip,
    ):
        for number, part in enumerate(data):
            member = tarfile.TarInfo(f"{number}.concrete")
            member.size = len(part)
            tar.addfile(member, io.BytesIO(part))
            zip.writestr(member.name, part)
    for name in ("row.concrete", "row.tar.gz", "row.zip"):
        assert [parsed.id for parsed in read(tmp_path / name)] == ["a", "b", "c"]


def test_damaged_concrete_is_said(tmp_path: Path) -> None:
    good = packed(communication(CONSTRUCTIONS["passive"][1]))
    (tmp_path / "a.concrete").write_bytes(good + good[:50])
    skipped = Skipped(unit="document")
    raws = list(FORMATS["concrete"].read(tmp_path / "a.concrete", ExtractOptions(), skipped))
    assert len(raws) == 1
    assert "communication 2: found bytes that cannot be read" in str(skipped)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as zip:
        zip.writestr("good", good)
        zip.writestr("bad", good[:50])
    first, second = FORMATS["concrete"].read(tmp_path / "a.zip", ExtractOptions(), skipped)
    assert FORMATS["concrete"].parse(first, ExtractOptions()).id == "c"
    with pytest.raises(DataError, match=r"a\.zip, communication 2: found bytes .* in bad"):
        FORMATS["concrete"].parse(second, ExtractOptions())
    (tmp_path / "a.tar.gz").write_bytes(b"no archive")
    with pytest.raises(DataError, match="cannot be read"):
        read(tmp_path / "a.tar.gz")


def test_concrete_without_what_it_must_have_is_said(tmp_path: Path) -> None:
    """Thrift leaves out what is not there: each such part is named, not the attribute of Python."""
    whole = communication(CONSTRUCTIONS["passive"][1], frames=((3, "Impact"),))
    tokenization = whole.sectionList[0].sentenceList[0].tokenization
    mentions = whole.situationMentionSetList[1]
    for thing, name, message in (
        (tokenization, "uuid", "a Tokenization without uuid"),
        (tokenization.tokenList, "tokenList", "a TokenList without tokenList"),
        (tokenization.tokenList.tokenList[0], "tokenIndex", "a Token without tokenIndex"),
        (tokenization.tokenList.tokenList[0].textSpan, "ending", "a TextSpan without ending"),
        (tokenization.dependencyParseList[1], "metadata", "a DependencyParse without metadata"),
        (tokenization.dependencyParseList[1], "dependencyList", "a DependencyParse without dependencyList"),
        (mentions.metadata, "tool", "a AnnotationMetadata without tool"),
        (mentions.mentionList[0].tokens, "tokenizationId", "a TokenRefSequence without tokenizationId"),
    ):
        kept = getattr(thing, name)
        setattr(thing, name, None)
        (tmp_path / "a.concrete").write_bytes(packed(whole))
        setattr(thing, name, kept)
        with pytest.raises(DataError, match=f"a.concrete, communication 1: found {message} in c"):
            read(tmp_path / "a.concrete")


@given(st.binary(max_size=60))
def test_any_bytes_are_concrete_or_refused_in_words(data: bytes) -> None:
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as folder:
        path = Path(folder, "a.concrete")
        path.write_bytes(data)
        for raw in FORMATS["concrete"].read(path, ExtractOptions(), Skipped()):
            extract_document(FORMATS["concrete"].parse(raw, ExtractOptions()), ExtractOptions())


# CoNLL-U files, and which file is what.


def test_documents_of_conllu(tmp_path: Path) -> None:
    sentence = conllu_lines(CONSTRUCTIONS["passive"][0])
    path = tmp_path / "a.conllu"
    path.write_text(f"# newdoc id = one\n{sentence}\n\n\n{sentence}\n\n# sent_id = 3\n# newdoc\n{sentence}")
    one, two = read(path)
    assert (one.id, two.id) == ("one", "a.conllu:13")
    assert [len(parsed.sentences) for parsed in (one, two)] == [2, 1]
    check_places(one)
    assert one.text == "The city was taken \nThe city was taken "
    path.write_text(sentence)
    assert [parsed.id for parsed in read(path)] == ["a.conllu"]


def test_a_bad_sentence_is_blamed_on_its_line(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu"
    path.write_text(f"{conllu_lines(CONSTRUCTIONS['passive'][0])}\n\n1\tHe\the\n")
    with pytest.raises(DataError, match=r"a\.conllu, line 6: found 3 columns at 'He', expected 10 columns"):
        read(path)


def test_the_name_tells_the_format() -> None:
    expected = {
        "a.txt.gz": "text",
        "A.CSV": "csv",
        "wiki_00": "wikiextractor",
        "a.conllu": "conllu",
        "a.concrete": "concrete",
        "a.comm.gz": "concrete",
        "a.tar.gz": "concrete",
        "a.pdf": None,
        "wiki_notes": None,
    }
    assert {name: guess_format(Path(name)) for name in expected} == expected


def test_folders_are_walked_in_order(tmp_path: Path) -> None:
    for name in ("b/x.txt", "a/x.txt", "a/notes.pdf", "c.conllu", ".hidden.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    found = list_files([tmp_path])
    assert [(name, choice) for _, name, choice in found] == [
        ("a/x.txt", "text"),
        ("b/x.txt", "text"),
        ("c.conllu", "conllu"),
    ]
    with pytest.raises(UserError, match="there are: text, csv"):
        list_files([tmp_path], "pdf")
    with pytest.raises(UserError, match="cannot tell the format"):
        list_files([tmp_path / "a" / "notes.pdf"])
    with pytest.raises(UserError, match="cannot read"):
        list_files([tmp_path / "nowhere"])


def test_raw_documents_can_be_sent_to_another_process(tmp_path: Path) -> None:
    import pickle

    raw = RawDocument("a", tmp_path, 1, [(1, "x")])
    assert pickle.loads(pickle.dumps(raw)) == raw
