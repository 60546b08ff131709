"""A component for spaCy: ``nlp.add_pipe("ssdvae", config={"model": "runs/first"})``.

After the parser, it finds the events of each text, and the model infers their frames; by default, the model
that comes with the package. ``doc._.events`` has a record for each event: its words, ``frame``,
``probability``, and under ``origin`` the characters of its verb in the text. Records are plain lists and
mappings, so a ``DocBin`` stores them.
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

from ssdvae.data.options import ExtractOptions
from ssdvae.extraction.readers.text import trees_of
from ssdvae.extraction.rules import extract_document
from ssdvae.extraction.tree import ParsedDocument
from ssdvae.io.errors import UserError

if TYPE_CHECKING:
    from ssdvae.models.base import Model

OPTIONS_FILE = "extraction.json"


@Language.factory(
    "ssdvae",
    assigns=["doc._.events"],
    requires=["doc.sents", "token.dep", "token.lemma"],
    default_config={"model": None, "lemmas": False, "negation": "keep", "top": 1},
)
def make(
    nlp: Language, name: str, model: str | None, lemmas: bool, negation: str, top: int
) -> EventComponent:
    """Return the component, with the name of a model and options of `extract` and `infer`."""
    return EventComponent(model, ExtractOptions.of({"lemmas": lemmas, "negation": negation}), top)


class EventComponent:
    """Finds events and infers their frames; saved and loaded with its pipeline.

    The model is loaded when it is first needed: a saved pipeline brings its own.
    """

    def __init__(self, model: str | None, options: ExtractOptions, top: int = 1) -> None:
        self.model_name, self.options, self.top = model, options, top
        self._model: Model | None = None
        if not Doc.has_extension("events"):
            Doc.set_extension("events", default=None)

    def load_model(self) -> Model:
        """Return the model. It is not an attribute ``model``, which spaCy would take for its own network."""
        if self._model is None:
            from ssdvae.commands.coerce import load

            self._model = load(self.model_name)
        return self._model

    def __call__(self, doc: Doc) -> Doc:
        self._annotate([doc])
        return doc

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 200) -> Iterator[Doc]:
        """Yield the texts of a stream, annotated in batches."""
        texts = iter(stream)
        while batch := list(islice(texts, batch_size)):
            self._annotate(batch)
            yield from batch

    def _annotate(self, docs: list[Doc]) -> None:
        from ssdvae.inference.posterior import infer_documents

        documents = (
            extract_document(ParsedDocument(str(number), doc.text, tuple(trees_of(doc))), self.options)
            for number, doc in enumerate(docs)
        )
        inferred = infer_documents(self.load_model(), documents, top=self.top)
        for doc, answer in zip(docs, inferred, strict=True):
            doc._.events = answer.to_record()["events"]

    # Methods that spaCy calls to save and load a pipeline.

    def to_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> None:
        self.load_model().save_pretrained(path)
        srsly.write_json(
            Path(path) / OPTIONS_FILE,
            {"lemmas": self.options.lemmas, "negation": self.options.negation, "top": self.top},
        )

    def from_disk(self, path: str | Path, exclude: Iterable[str] = ()) -> EventComponent:
        from ssdvae.models.hub import read_model

        values: Any = srsly.read_json(Path(path) / OPTIONS_FILE)
        self.top = int(values.pop("top"))
        self.options = ExtractOptions(**values)
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
