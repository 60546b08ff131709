"""The server: views and API behind the guard."""

from __future__ import annotations

import asyncio
import logging
import socket
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp

from ssdvae import __version__
from ssdvae.app import frames, rest, views
from ssdvae.app.batcher import Busy
from ssdvae.app.explorer import Explored, Explorer
from ssdvae.app.guard import Guard, problem
from ssdvae.app.library import Library
from ssdvae.app.reference import reference
from ssdvae.app.shell import State, shell
from ssdvae.app.wire import Limits
from ssdvae.config import LOCAL, ExploreSettings
from ssdvae.data.corpus import Corpus
from ssdvae.errors import UserError
from ssdvae.models.base import Model
from ssdvae.models.hub import SCRIPTS
from ssdvae.report.page import asset, style
from ssdvae.report.runs import short_names
from ssdvae.runs import Run

log = logging.getLogger(__name__)

ASSETS = {
    "style.css": (style(), "text/css"),
    "script.js": (asset("script.js"), "text/javascript"),
    **{
        name: ((resources.files(__package__) / name).read_text(encoding="utf-8"), kind)
        for name, kind in (("app.css", "text/css"), ("app.js", "text/javascript"))
    },
}
"""All files that can be asked for."""

View = Callable[[State], Awaitable[str | Response]]
"""A page, or the way to another."""


def explored(
    models: Sequence[tuple[Path, Model]], documents: Path | None, settings: ExploreSettings
) -> list[Explored]:
    """Models with the documents that they are shown on: those that are named, or their own corpora."""
    names = short_names([folder for folder, _ in models])
    found = []
    for name, (folder, model) in zip(names, models, strict=True):
        corpus, file = None, documents
        if documents is not None and documents.is_dir():
            corpus, file = Corpus(documents), None
            corpus.check_names(model.vocabulary, model.frames, model.slots)
        elif documents is None:
            corpus = _own_corpus(folder, model)
        scripts = folder / SCRIPTS if (folder / SCRIPTS).is_file() else None
        found.append(Explored(name, model, Library(model, settings, corpus, file, scripts)))
    return found


def _own_corpus(folder: Path, model: Model) -> Corpus | None:
    """That which a run was trained on, if it is still there."""
    try:
        corpus = Corpus(Run(folder).config()[0])
        corpus.check_names(model.vocabulary, model.frames, model.slots)
    except UserError as error:
        log.info(f"{folder}: no documents are shown: {error}")
        return None
    return corpus


def create_app(explorer: Explorer, port: int) -> ASGIApp:
    """The application, behind its guard."""
    settings, limits = explorer.settings, Limits(explorer.settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(explorer.close)

    app = FastAPI(
        title="ssdvae explore",
        version=__version__,
        description="What models of event sequences say of events.",
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )

    @app.exception_handler(UserError)
    async def mistaken(request: Request, error: UserError) -> Response:
        return problem(422, str(error))

    @app.exception_handler(Busy)
    async def busy(request: Request, error: Busy) -> Response:
        return problem(503, f"{error}: try again", **{"Retry-After": "1"})

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        # Where and what, and not the input once more: it may be long.
        found = [f"{'.'.join(map(str, e['loc'][1:])) or 'body'}: {e['msg']}" for e in error.errors()[:5]]
        return problem(422, "; ".join(found))

    app.include_router(rest.routes(explorer, limits))

    @app.get("/", include_in_schema=False)
    async def start() -> Response:
        return RedirectResponse("/read")

    @app.get("/assets/{name}", include_in_schema=False)
    async def assets(name: str) -> Response:
        if name not in ASSETS:
            return problem(404, "there is no such file")
        content, kind = ASSETS[name]
        return Response(content, media_type=kind)

    async def docs(state: State) -> str:
        return shell(explorer, "docs", state, [reference(app.openapi())])

    shown: dict[str, View] = {
        "read": lambda state: views.read(explorer, limits, state),
        "next": lambda state: views.next_event(explorer, limits, state),
        "frames": lambda state: frames.frames(explorer, state),
        "documents": lambda state: views.documents(explorer, limits, state),
        "docs": docs,
    }
    for name, view in shown.items():
        route = app.get(f"/{name}", include_in_schema=False, response_class=HTMLResponse, response_model=None)
        route(_page(view))
    names = {f"[{name}]" if ":" in name else name for name in (*LOCAL, settings.host)}
    hosts = frozenset(f"{name}:{port}" for name in names) | (names if port == 80 else frozenset())
    return Guard(app, hosts, settings.token, settings.max_bytes)


def _page(view: View) -> Callable[[Request], Awaitable[str | Response]]:
    async def page(request: Request) -> str | Response:
        return await view(State.of(request.query_params.multi_items()))

    return page


def bind(settings: ExploreSettings) -> socket.socket:
    """A socket at the address of the settings."""
    listening = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((settings.host, settings.port))
    except OSError as error:
        listening.close()
        raise UserError(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}\n"
            "choose another --port, or 0 for any that is free"
        ) from error
    return listening


def make_server(models: Sequence[Explored], settings: ExploreSettings, port: int) -> uvicorn.Server:
    """A server of these models, to be run on a socket with this port."""
    app = create_app(Explorer(models, settings), port)
    return uvicorn.Server(
        uvicorn.Config(app, log_config=None, access_log=False, timeout_keep_alive=30, server_header=False)
    )


def serve(models: Sequence[Explored], settings: ExploreSettings) -> None:
    """Answer until interrupted."""
    with bind(settings) as listening:
        port = listening.getsockname()[1]
        host = f"[{settings.host}]" if ":" in settings.host else settings.host
        token = f"?token={quote(settings.token)}" if settings.token else ""
        link = f"http://{host}:{port}/{token}"
        log.info(f"exploring {', '.join(m.name for m in models)} at {link}  (Ctrl-C to stop)")
        server = make_server(models, settings, port)
        listening.listen(2048)
        if settings.open:
            webbrowser.open(link)  # the socket listens: the browser waits until the server answers
        server.run(sockets=[listening])
