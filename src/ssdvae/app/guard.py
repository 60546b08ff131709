"""The guard before every request: it checks host name, origin, size and token.

A page of another site can send requests to this machine, and its host name can be made to point here (DNS
rebinding). So the host name must be one of this server's, and a request must come from its own pages. Where
others can reach the server, a token is needed.
"""

from __future__ import annotations

import hmac
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "ssdvae-token"

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
    "connect-src 'self'; img-src 'self' data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
"""Headers of every answer: nothing is loaded from another host, and no script runs but our own files."""


class TooLarge(Exception):
    """More bytes than a request may have."""


def problem(status: int, message: str, **headers: str) -> Response:
    """Return an error in the form in which FastAPI tells it."""
    return JSONResponse({"detail": message}, status, headers)


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, names: frozenset[str], token: str | None, most_bytes: int) -> None:
        """Answer to the host ``names``; with a token, to any."""
        self.app, self.names, self.token, self.most_bytes = app, names, token, most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused; hand on any other."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = False

        async def secured(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started, headers = True, MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await (self._refuse(scope) or self.app)(scope, self._counted(receive), secured)
        except TooLarge:
            if not started:
                await self._too_large()(scope, receive, secured)

    def _too_large(self) -> Response:
        return problem(413, f"the request has more than {self.most_bytes:,} bytes", Connection="close")

    def _counted(self, receive: Receive) -> Receive:
        """Return the body, as long as it is not too large."""
        total = 0

        async def counted() -> Message:
            nonlocal total
            message = await receive()
            total += len(message.get("body", b""))
            if total > self.most_bytes:
                raise TooLarge
            return message

        return counted

    def _refuse(self, scope: Scope) -> Response | None:
        """Return the answer to a request that goes no further, None for any other."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if self.token is None and host.lower() not in self.names:
            return problem(421, f"this server does not answer to the name {host[:100]!r}")
        origin = headers.get("origin")
        if (origin is not None and urlsplit(origin).netloc.lower() != host.lower()) or (
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


def _cookie(headers: Headers) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())
