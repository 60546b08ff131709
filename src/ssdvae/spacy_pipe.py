"""A component for spaCy: ``nlp.add_pipe("ssdvae", config={"model": "runs/first"})``.

Without a model, the one that comes with the package. After the parser, it finds the events of each text and
lets the model name their frames. ``doc._.events`` has them as records: one for each event, with its words,
``frame``, ``probability``, and under ``origin`` the characters of its verb in the text. They are plain lists
and mappings, so a ``DocBin`` keeps them.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import srsly
from spacy.language import Language
from spacy.tokens import Doc

from ssdvae.config import ExtractSettings
from ssdvae.errors import UserError
from ssdvae.extraction.parsed import Parsed, to_document
from ssdvae.extraction.readers.text import trees_of

if TYPE_CHECKING:
    from ssdvae.models.base import Model

SETTINGS = "extraction.json"


@Language.factory(
    "ssdvae",
    assigns=["doc._.events"],
    requires=["doc.sents", "token.dep", "token.lemma"],
    default_config={"model": None, "lemmas": False, "negation": "keep", "top": 1},
)
def make(
    nlp: Language, name: str, model: str | None, lemmas: bool, negation: str, top: int
) -> EventComponent:
    """``model`` is a run folder or the name of a model; the others are settings of `extract` and `infer`."""
    return EventComponent(model, ExtractSettings.of({"lemmas": lemmas, "negation": negation}), top)


class EventComponent:
    """Events with frames, text by text; saved and loaded with the pipeline that it is in.

    The model is looked for when it is first asked: a saved pipeline brings its own, wherever it goes.
    """

    def __init__(self, model: str | None, settings: ExtractSettings, top: int = 1) -> None:
        self.named, self.settings, self.top = model, settings, top
        self._model: Model | None = None
        if not Doc.has_extension("events"):
            Doc.set_extension("events", default=None)

    def loaded(self) -> Model:
        """The model; not an attribute of that name, which spaCy would take for a network of its own."""
        if self._model is None:
            from ssdvae.api import load

            self._model = load(self.named)
        return self._model

    def __call__(self, doc: Doc) -> Doc:
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 200) -> Iterator[Doc]:
        """A stream of texts, as many at once as spaCy says."""
        texts = iter(stream)
        while some := list(islice(texts, batch_size)):
            self._annotate(some)
            yield from some

    def _annotate(self, docs: list[Doc]) -> None:
        from ssdvae.answers.infer import infer_documents

        found = (
            to_document(Parsed(str(number), doc.text, tuple(trees_of(doc))), self.settings)
            for number, doc in enumerate(docs)
        )
        for doc, inferred in zip(docs, infer_documents(self.loaded(), found, top=self.top), strict=True):
            doc._.events = inferred.to_record()["events"]

    # What spaCy asks of a component that is saved with its pipeline.

    def to_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> None:
        self.loaded().save_pretrained(path)
        srsly.write_json(
            Path(path) / SETTINGS,
            {"lemmas": self.settings.lemmas, "negation": self.settings.negation, "top": self.top},
        )

    def from_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> EventComponent:
        from ssdvae.models.hub import read_model

        values: Any = srsly.read_json(Path(path) / SETTINGS)
        self.top = int(values.pop("top"))
        self.settings = ExtractSettings.exactly(values)
        self._model = read_model(Path(path))
        return self

    def to_bytes(self, exclude: Iterable[str] = ()) -> bytes:
        with tempfile.TemporaryDirectory() as folder:
            self.to_disk(folder)
            files = {path.name: path.read_bytes() for path in Path(folder).iterdir() if path.is_file()}
        packed: bytes = srsly.msgpack_dumps(files)
        return packed

    def from_bytes(self, data: bytes, exclude: Iterable[str] = ()) -> EventComponent:
        with tempfile.TemporaryDirectory() as folder:
            for name, content in srsly.msgpack_loads(data).items():
                if Path(name).name != name:
                    raise UserError(f"{name!r} in a saved pipeline is no file of a model")
                (Path(folder) / name).write_bytes(content)
            return self.from_disk(folder)
