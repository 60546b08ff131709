"""Masked events and orders: what is written is read, all else refused in words; and what they are made of."""

from __future__ import annotations

import itertools
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ssdvae.data.corpus import Corpus
from ssdvae.data.events import MISSING, SLOTS, Document, Event
from ssdvae.data.items import (
    ItemBuilder,
    MaskedItem,
    OrderItem,
    Script,
    count_items,
    read_items,
    write_items,
)
from ssdvae.data.options import PrepareOptions
from ssdvae.data.prepare import prepare
from ssdvae.data.readers import write_jsonl
from ssdvae.io.errors import DataError, UserError

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.just(MISSING)


def scripts(width: int, least: int) -> st.SearchStrategy[Script]:
    return st.lists(st.tuples(*[WORDS] * width), min_size=least, max_size=least + 2).map(tuple)


@st.composite
def items(draw: st.DrawFn) -> list[MaskedItem | OrderItem]:
    """All of one kind; any number of slots."""
    width, masked = draw(st.integers(1, 5)), draw(st.booleans())
    made: list[MaskedItem | OrderItem] = []
    for script in draw(st.lists(scripts(width, 2), min_size=1, max_size=3)):
        places = range(len(script))
        if masked:
            made.append(
                MaskedItem(events=script, place=draw(st.sampled_from(places)), others=draw(scripts(width, 1)))
            )
        elif pairs := [(a, b) for a, b in itertools.combinations(places, 2) if script[a] != script[b]]:
            made.append(OrderItem(events=script, swapped=draw(st.sampled_from(pairs))))
    return made


@given(items(), st.sampled_from(["a.jsonl", "a.jsonl.gz"]))
def test_what_was_written_is_read(made: list[MaskedItem | OrderItem], name: str) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        assert write_items(path, made) == len(made)
        if made:
            kind: Any = type(made[0])
            assert read_items(path, kind) == made


@given(st.binary(max_size=60), st.sampled_from([MaskedItem, OrderItem]))
def test_any_bytes_are_read_or_refused_in_words(content: bytes, kind: type[MaskedItem]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, "a.jsonl")
        path.write_bytes(content)
        with suppress(DataError):
            read_items(path, kind)


E2 = '[["a", "b"], ["c", null]]'


@pytest.mark.parametrize(
    ("kind", "line", "match"),
    [
        (
            MaskedItem,
            f'{{"events": {E2}, "place": 2, "others": [["a", "b"]]}}',
            "found the place 2, expected",
        ),
        (MaskedItem, f'{{"events": {E2}, "place": 0, "others": []}}', "found no other events"),
        (MaskedItem, f'{{"events": {E2}, "place": 0, "others": [["a"]]}}', "found events of 1 and 2 words"),
        (MaskedItem, f'{{"events": {E2}, "place": 0}}', "found no others"),
        (OrderItem, f'{{"events": {E2}, "swapped": [1, 0]}}', "found the places 1 and 0"),
        (OrderItem, f'{{"events": {E2}, "swapped": [0]}}', ".*swapped"),
        (OrderItem, '{"events": [["a"], ["a"]], "swapped": [0, 1]}', "found the same event at the places"),
        (OrderItem, f'{{"events": {E2}, "swapped": ["0", 1]}}', "found '0' at swapped"),
    ],
)
def test_what_is_wrong_is_said_with_its_line(
    tmp_path: Path, kind: type[MaskedItem], line: str, match: str
) -> None:
    good = {
        MaskedItem: f'{{"events": {E2}, "place": 1, "others": [["x", "y"]]}}',
        OrderItem: f'{{"events": {E2}, "swapped": [0, 1]}}',
    }
    path = tmp_path / "a.jsonl"
    path.write_text(f"{good[kind]}\n\n{line}\n")
    with pytest.raises(DataError, match=rf"a\.jsonl, line 3: {match}"):
        read_items(path, kind)
    path.write_text("\n")
    with pytest.raises(DataError, match="found no items"):
        read_items(path, kind)


def document(number: int, length: int) -> Document:
    """Every verb names its document and place."""
    return Document(f"d{number}", tuple(Event(f"v{number}-{m}", "ann", frame="F") for m in range(length)))


SETTINGS = PrepareOptions(cloze_items=30, cloze_events=5, cloze_options=4)


def built(documents: list[Document]) -> ItemBuilder:
    builder = ItemBuilder(SETTINGS)
    for document in documents:
        builder.add(document.id, [event.padded(4) for event in document.events])
    return builder


DOCUMENTS = [document(number, 1 + number % 7) for number in range(120)]


def test_what_items_are_made_of() -> None:
    """The true option is a document as it was; wrong events are of others; any place may be asked for."""
    builder = built(DOCUMENTS)
    masked, orders = builder.masked(), builder.orders()
    assert len(masked) == len(orders) == 30
    scripts = {tuple(e.padded(4) for e in d.events[:5]) for d in DOCUMENTS if len(d.events) >= 3}
    for item in masked:
        options = item.question.options
        assert options[0] == item.events
        assert item.events in scripts
        assert len(set(options)) == 4
        assert not set(item.others) & set(item.events)
        for option in options:
            different = [m for m in range(len(option)) if option[m] != item.events[m]]
            assert different in ([], [item.place])
    for order in orders:
        true, swapped = order.options
        assert true in scripts
        assert sorted(true) == sorted(swapped)
        assert [m for m in range(len(true)) if true[m] != swapped[m]] == list(order.swapped)
    assert {item.place for item in masked} == set(range(5))
    assert len({order.swapped for order in orders}) > 5


def test_items_do_not_depend_on_the_order_of_documents_nor_on_who_reads_them() -> None:
    whole, apart = built(DOCUMENTS), built(DOCUMENTS[::2])
    apart.add_all(built(DOCUMENTS[::-2]))
    assert apart.masked() == whole.masked() == built(DOCUMENTS[::-1]).masked()
    assert apart.orders() == whole.orders()


def test_too_few_events_give_no_items() -> None:
    assert built([document(n, 2) for n in range(50)]).orders() == []
    assert built([document(0, 5)]).masked() == []
    alike = Document("d", tuple(Event("v", "ann", frame="F") for _ in range(5)))
    assert built([alike]).orders() == []


def test_prepare_writes_them(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "a.jsonl", DOCUMENTS)
    settings = PrepareOptions(valid_share=0.4, test_share=0.3, cloze_items=10)
    corpus = prepare(tmp_path / "a.jsonl", tmp_path / "a", settings)
    for kind in ("masked", "order"):
        for split in ("valid", "test"):
            assert count_items(corpus.items(kind, split), kind, SLOTS) == corpus.manifest[kind][split] == 10
    none = prepare(tmp_path / "a.jsonl", tmp_path / "b", PrepareOptions(cloze_items=0))
    assert not none.has_items("masked", "valid")
    with pytest.raises(UserError, match=r"no order items for the split 'test'\n(.|\n)*prepare again"):
        Corpus(none.folder).items("order", "test")
