"""The guard before every request: it checks host name, origin, size, token and time.

A page of another site can send requests to this machine, and its host name can be made to point here (DNS
rebinding). So the host name must be one of this server's, and a request must come from its own pages. Where
others can reach the server, a token is needed.
"""

from __future__ import annotations

import asyncio
import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ssdvae.app.batcher import HOST
from ssdvae.app.options import ExploreOptions
from ssdvae.report.render import render

COOKIE = "ssdvae-token"

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every answer: nothing is loaded from another host, and no script runs but our own files."""


HEADER_BYTES = 16_384
"""Bytes of the address and the headers of a request, at most."""

READ_SECONDS = 10.0
"""Seconds in which the headers of a request must come, and then its body."""


class Problem(JSONResponse):
    """An error: a page for a browser; for a program JSON, in the form in which FastAPI tells it."""

    def __init__(self, status: int, message: str, headers: dict[str, str]) -> None:
        super().__init__({"detail": message}, status, headers)
        self.page = HTMLResponse(render("problem.html", title="Error", message=message), status, headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        html = "text/html" in Headers(scope=scope).get("accept", "")
        await (self.page(scope, receive, send) if html else super().__call__(scope, receive, send))


def problem(status: int, message: str, **headers: str) -> Response:
    """Return an error."""
    return Problem(status, message, headers)


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, names: frozenset[str], options: ExploreOptions) -> None:
        """Answer to the host ``names``; with a token, to any."""
        self.app, self.names, self.token = app, names, options.token
        self.most_bytes, self.seconds = options.max_bytes, options.seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused; hand on any other."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        answer = self._refuse(scope) or await self._read(receive)
        if not isinstance(answer, bytes):
            await answer(scope, receive, secured)
            return
        HOST.set((scope.get("client") or ("",))[0])
        await self._answer(scope, answer, receive, secured)

    async def _read(self, receive: Receive) -> bytes | Response:
        """Return the body, or the answer to one that is too large or too slow."""
        body = bytearray()
        try:
            async with asyncio.timeout(READ_SECONDS):
                while (message := await receive()).get("more_body") or message.get("body"):
                    body += message["body"]
                    if len(body) > self.most_bytes:
                        return self._too_large()
                    if not message["more_body"]:
                        break
        except TimeoutError:
            return problem(408, f"the body did not come within {READ_SECONDS:g} seconds", Connection="close")
        return bytes(body)

    async def _answer(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        """Let the application answer, until it takes too long or nobody waits for it any more."""
        started = False
        whole: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
        gone = asyncio.ensure_future(receive())  # which next tells that the client has left

        async def replay() -> Message:
            return whole.pop() if whole else await asyncio.shield(gone)

        async def noted(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        work = asyncio.ensure_future(self.app(scope, replay, noted))
        try:
            await asyncio.wait({work, gone}, timeout=self.seconds, return_when=asyncio.FIRST_COMPLETED)
            if started:
                await asyncio.wait({work}, timeout=READ_SECONDS)
            if work.done():
                await work
            elif not gone.done() and not started:
                work.cancel()
                late = f"there was no answer within {self.seconds:g} seconds: try again"
                await problem(503, late, **{"Retry-After": "1"})(scope, receive, send)
        finally:
            work.cancel()
            gone.cancel()

    def _too_large(self) -> Response:
        return problem(413, f"the request has more than {self.most_bytes:,} bytes", Connection="close")

    def _refuse(self, scope: Scope) -> Response | None:
        """Return the answer to a request that goes no further, None for any other."""
        headers = Headers(scope=scope)
        pairs = [(scope["raw_path"], scope["query_string"]), *scope["headers"]]
        if sum(len(name) + len(value) for name, value in pairs) > HEADER_BYTES:
            return problem(
                431, f"the address and the headers have more than {HEADER_BYTES:,} bytes", Connection="close"
            )
        host = headers.get("host", "")
        if self.token is None and host.lower() not in self.names:
            return problem(421, f"this server does not answer to the name {host[:100]!r}")
        origin = headers.get("origin")
        if (origin is not None and _host_of(origin) != host.lower()) or (
            headers.get("sec-fetch-site") == "cross-site" and scope["method"] != "GET"
        ):
            return problem(403, "this came from the page of another site")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self.most_bytes:
            return self._too_large()
        return None if self.token is None else self._check_token(scope, headers, self.token)

    def _check_token(self, scope: Scope, headers: Headers, token: str) -> Response | None:
        """Return None if the token is known: from a header, a cookie, or once from the address."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = [value for name, value in query if name == "token"]
        if given:
            if not _same(given[0], token):
                return problem(401, "the token is not that of this server")
            rest = urlencode([(name, value) for name, value in query if name != "token"])
            answer = RedirectResponse("/" + scope["path"].lstrip("/") + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(COOKIE, token, httponly=True, samesite="strict")
            return answer
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if (scheme.lower() == "bearer" and _same(bearer, token)) or _same(_cookie(headers), token):
            return None
        return problem(401, "a token is needed: the link that was printed at the start has it")


def _host_of(origin: str) -> str | None:
    """Return the host of an origin; None if it has none."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return None


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())
