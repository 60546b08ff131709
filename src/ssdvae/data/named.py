"""Documents of a corpus in words again."""

from __future__ import annotations

from collections.abc import Sequence

from ssdvae.data.corpus import Corpus
from ssdvae.data.documents import Documents
from ssdvae.data.events import Document, Event


def to_documents(corpus: Corpus, documents: Documents) -> list[Document]:
    """Documents in words: a rare word is the unknown one, as the model sees it."""

    def event(tokens: Sequence[int], frame: int) -> Event:
        words = [corpus.vocabulary.name(word) for word in tokens]
        return Event.of_words(words, corpus.frames.name(frame) if frame >= 0 else None)

    return [
        Document(str(id), tuple(map(event, documents.tokens[part].tolist(), documents.frames[part].tolist())))
        for id, part in zip(documents.ids.to_pylist(), documents.parts(), strict=True)
    ]
