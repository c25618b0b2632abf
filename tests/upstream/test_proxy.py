"""TLS and proxies, on real sockets; addresses, and what the environment says of them."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from headwater.upstream.pool import Address, Pool, ProxyRefused, proxy_of_environment, read_address, shared_tls
from tests.upstream.test_connection import BODY, Upstream, ask
from tests.upstream.wire import HEAD, LAST, listening

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


CERTIFICATE = Path(__file__).parent / "localhost.pem"


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(CERTIFICATE)
    return server, ssl.create_default_context(cafile=str(CERTIFICATE))


async def test_tls_reaches_whom_it_names_and_nobody_else() -> None:
    server, client = contexts()
    upstream = Upstream(HEAD + BODY + LAST)
    async with listening(upstream.talk, server) as port:
        pool = Pool(Address(True, "localhost", port), tls=client)
        assert (await ask(pool)).body == b"onetwo"
        pool.close()
        with pytest.raises(ssl.SSLCertVerificationError):
            await Pool(Address(True, "127.0.0.1", port), tls=client).connect()
        with pytest.raises(ssl.SSLCertVerificationError):
            await Pool(Address(True, "localhost", port)).connect()


class Proxy:
    """Takes CONNECT to where it is told, or says no."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 Connection established\r\n\r\n") -> None:
        self.answer = answer
        self.heads: list[bytes] = []

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        port = int(self.heads[-1].split()[1].rpartition(b":")[2])
        writer.write(self.answer)
        if b" 200 " not in self.answer:
            return
        there, back = await asyncio.open_connection("127.0.0.1", port)
        try:
            await asyncio.gather(self._copy(reader, back), self._copy(there, writer))
        finally:
            back.transport.abort()

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        while data := await source.read(65536):
            target.write(data)


async def test_tls_goes_through_a_proxy_that_is_asked_by_name() -> None:
    server, client = contexts()
    upstream, proxy = Upstream(HEAD + BODY + LAST), Proxy()
    async with listening(upstream.talk, server) as port, listening(proxy.talk) as proxy_port:
        way = read_address(f"http://me:s%40cret@127.0.0.1:{proxy_port}")
        pool = Pool(Address(True, "localhost", port), proxy=way, tls=client)
        assert [(await ask(pool)).body for _ in range(2)] == [b"onetwo"] * 2
        assert len(proxy.heads) == 1
        assert proxy.heads[0].startswith(b"CONNECT localhost:%d HTTP/1.1\r\n" % port)
        assert b"proxy-authorization: Basic bWU6c0BjcmV0" in proxy.heads[0]
        assert b"proxy-authorization" not in upstream.requests[0]
        pool.close()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 407 No\r\n\r\n", b"x" * 70_000, b"HTTP/1.1 200 OK\r\n\r\nmore", b""])
async def test_a_proxy_that_says_no_is_a_connection_that_failed(answer: bytes) -> None:
    async with listening(Proxy(answer).talk) as proxy_port:
        way = Address(False, "127.0.0.1", proxy_port)
        with pytest.raises(ConnectionError):
            await Pool(Address(True, "localhost", 1), proxy=way, tls=contexts()[1]).connect()


async def test_plain_http_is_handed_to_the_proxy_with_its_whole_address() -> None:
    upstream = Upstream(HEAD + BODY + LAST)
    async with listening(upstream.talk) as proxy_port:
        way = read_address(f"http://me:pw@127.0.0.1:{proxy_port}")
        pool = Pool(read_address("http://models.example"), proxy=way)
        assert (await ask(pool)).body == b"onetwo"
        assert upstream.requests[0].startswith(b"POST http://models.example/v1/x HTTP/1.1\r\nhost: models.example\r\n")
        assert b"proxy-authorization: Basic bWU6cHc=\r\n" in upstream.requests[0]
        pool.close()


@pytest.mark.parametrize(
    ("environment", "url", "proxy"),
    [
        ({}, "https://models.example", None),
        ({"HTTPS_PROXY": "http://p.example:3128"}, "https://models.example", Address(False, "p.example", 3128)),
        ({"https_proxy": "p.example"}, "https://models.example", Address(False, "p.example", 80)),
        ({"HTTPS_PROXY": "http://p.example"}, "http://models.example", None),
        ({"ALL_PROXY": "http://p.example"}, "http://models.example", Address(False, "p.example", 80)),
        ({"HTTPS_PROXY": "http://p.example", "NO_PROXY": "other,.example"}, "https://models.example", None),
    ],
)
def test_the_environment_names_the_proxy(
    environment: dict[str, str], url: str, proxy: Address | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("http", "https", "all", "no"):
        monkeypatch.delenv(f"{name}_proxy", raising=False)
        monkeypatch.delenv(f"{name}_PROXY".upper(), raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert proxy_of_environment(read_address(url)) == proxy


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("https_proxy", "https://me:s3cret@p.example", "plain HTTP"),
        ("HTTPS_PROXY", "http://me:s3cret@p.example:99999", "no http or https address"),
        ("ALL_PROXY", "socks5://me:s3cret@p.example", "no http or https address"),
        ("all_proxy", "http://me:s3cret", "no http or https address"),
        ("Https_Proxy", "http://me:s3cret@[p.example", "no http or https address"),
    ],
)
def test_a_proxy_that_can_not_be_used_is_named_by_its_variable_alone(
    variable: str, value: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv(variable, value)
    with pytest.raises(ValueError, match=words) as caught:
        proxy_of_environment(read_address("https://models.example"))
    assert str(caught.value).startswith(f"{variable} can't be used: ")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("url", ["ftp://x", "models.example", "http://", "", "http://a:b", "http://[x", "http://ⅷ℀/"])
def test_what_is_no_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(ValueError, match="it is no http or https address"):
        read_address(url)


def test_the_certificates_are_read_once() -> None:
    assert shared_tls() is shared_tls()


def test_what_a_proxy_says_may_be_that_it_wants_a_login() -> None:
    assert ProxyRefused("HTTP/1.1 407 Who are you?").wants_login
    assert not ProxyRefused("HTTP/1.1 403 407").wants_login


@pytest.mark.parametrize("headers", [{"x-key": "s3cret\r\nc: d"}, {"x-key\n": "s3cret"}])
async def test_a_header_can_not_break_out_of_its_line_and_its_value_is_not_told(headers: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="control character may be in the header 'x-key") as caught:
        Pool(Address(False, "h", 1)).head("/", headers)
    assert "s3cret" not in str(caught.value)
    with pytest.raises(ValueError, match="control character may be in the address"):
        Pool(Address(False, "h", 1)).head("/a\nb", {})


def test_an_address_of_version_6_keeps_its_brackets() -> None:
    assert read_address("https://[::1]:8443").authority == "[::1]:8443"
