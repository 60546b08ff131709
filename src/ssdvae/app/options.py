"""Options of `explore`."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from ssdvae.data.options import ExtractOptions, Split
from ssdvae.io.errors import UserError
from ssdvae.options import Options

LOCAL = ("127.0.0.1", "localhost", "::1")
"""Host names of this machine that no other can use."""


class ExploreOptions(Options):
    """Options of the explorer and its server."""

    group: ClassVar[str] = "limits on one request"

    host: str = Field(
        "127.0.0.1", description="address to listen on; one that others can reach needs --token"
    )
    port: int = Field(8765, description="port to listen on; 0 for any that is free", ge=0, le=65_535)
    token: str | None = Field(
        None, description="access token (at least 12 characters); included in the printed URL"
    )
    open: bool = Field(True, description="open the browser")
    demo: bool = Field(False, description="begin with a tour of four steps")
    split: Split = Field("valid", description="which split of a corpus is shown")
    sample: int = Field(1_000, description="documents to show, at most", ge=1)
    spacy_model: str = Field(
        ExtractOptions.model_fields["spacy_model"].default,
        description="spaCy model for texts that are typed, or its folder",
    )
    max_bytes: int = Field(1_000_000, description="bytes of a request, at most", ge=1_000)
    max_events: int = Field(2_000, description="events of a request, at most", ge=1)
    max_work: int = Field(
        50_000, description="work of a request, at most: missing events × candidates × events", ge=1
    )
    seconds: float = Field(30.0, description="seconds that a request may take", gt=0)
    connections: int = Field(
        100, description="connections at once, at most; of idle ones the oldest ends", ge=2
    )
    batch: int = Field(100, description="documents that are read for a view at once", ge=1)

    def check_relations(self) -> None:
        """Check that a server that others can reach has a token."""
        if self.token is not None and len(self.token) < 12:
            raise UserError(f"found a --token of {len(self.token)} characters, expected 12 or more")
        if self.token is not None and not (self.token.isascii() and self.token.isprintable()):
            raise UserError(
                "found a --token with other characters, expected letters, digits and signs of ASCII"
            )
        if self.token is None and not self.local:
            raise UserError(
                f"others can reach {self.host}: give a --token of 12 characters or more that they must know\n"
                "or leave --host out: then only this machine can"
            )

    @property
    def local(self) -> bool:
        """True if only this machine can reach the server."""
        return self.host in LOCAL
