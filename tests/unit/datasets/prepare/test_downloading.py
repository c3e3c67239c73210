"""Downloads over connections that break, from servers that resume, do not, or changed the file."""

from __future__ import annotations

import contextlib
import json
import random
import socketserver
import threading

import pytest
from file_servers import serving

from benchmark.core.errors import ConfigError, DataError
from benchmark.datasets.prepare import download as downloading
from benchmark.datasets.prepare.digests import check_digests, parse_digests
from benchmark.datasets.prepare.download import download, public_url
from benchmark.datasets.prepare.install import Source

CONTENT = random.Random(0).randbytes(300_000)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(downloading, "FIRST_WAIT", 0.0)


@pytest.fixture
def server():
    with serving(CONTENT) as running:
        yield running


@pytest.fixture
def target(tmp_path):
    return tmp_path / "downloads" / "file.tgz"


def leave_part(target, url, content, version='"first"', total=300_000):
    """Leaves what a download that was killed leaves."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_name("file.tgz.part").write_bytes(content)
    memory = {"url": url, "total": total, "version": version}
    target.with_name("file.tgz.part.json").write_text(json.dumps(memory))


def test_a_file_arrives_whole_and_alone(server, target):
    assert download(server.address + "file.tgz", target).read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["file.tgz"]
    download(server.address + "file.tgz", target)
    assert server.asked == [None], "a file that is there is not fetched again"


def test_a_connection_that_ends_midway_is_resumed_where_it_ended(server, target, capsys):
    server.hang_up = 100_000
    assert download(server.address, target).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-", "bytes=200000-"]
    assert server.sent == len(CONTENT), "no byte was sent twice"
    assert (
        "the connection ended after 100.0 kB of 300.0 kB; trying again" in capsys.readouterr().err
    )


def test_a_killed_download_is_resumed_by_the_next_command(server, target):
    leave_part(target, server.address, CONTENT[:120_000])
    assert download(server.address, target).read_bytes() == CONTENT
    assert server.asked == ["bytes=120000-"]


def test_a_server_without_ranges_makes_the_download_start_over(server, target, capsys):
    server.ranges = False
    leave_part(target, server.address, CONTENT[:120_000])
    assert download(server.address, target).read_bytes() == CONTENT
    assert server.sent == len(CONTENT)
    assert "starting over" in capsys.readouterr().err


@pytest.mark.parametrize("change", [{"version": '"older"'}, {"version": None, "total": 299_999}])
def test_another_version_on_the_server_makes_the_download_start_over(server, target, change):
    leave_part(target, server.address, b"\0" * 120_000, **change)
    assert download(server.address, target).read_bytes() == CONTENT


def test_a_length_of_endless_digits_is_no_length(server, target):
    server.length = "9" * 5_000
    assert download(server.address, target).read_bytes() == CONTENT


def test_a_part_of_another_address_is_not_continued(server, target):
    leave_part(target, "http://elsewhere.example/file.tgz", b"\0" * 120_000)
    assert download(server.address, target).read_bytes() == CONTENT
    assert server.asked == [None]


def test_a_part_that_is_whole_already_is_taken(server, target):
    leave_part(target, server.address, CONTENT)
    assert download(server.address, target).read_bytes() == CONTENT
    assert server.sent == 0


def test_a_server_that_stays_away_ends_with_what_to_do_and_keeps_what_arrived(server, target):
    leave_part(target, server.address, CONTENT[:120_000])
    server.states = [503] * downloading.ATTEMPTS
    with pytest.raises(
        DataError,
        match=r"HTTP 503 .* gave up after 5 .* 120\.0 kB are kept: start the same command",
    ):
        download(server.address, target)
    assert download(server.address, target).read_bytes() == CONTENT
    assert server.sent == len(CONTENT) - 120_000


def test_a_server_that_recovers_is_waited_for(server, target):
    server.states = [500, 429]
    assert download(server.address, target).read_bytes() == CONTENT


def test_a_wrong_address_is_not_tried_again(server, target):
    server.states = [404]
    with pytest.raises(DataError, match=r"HTTP 404 .*check the address"):
        download(server.address + "file.tgz", target)
    assert len(server.asked) == 1
    assert not target.exists()


@pytest.mark.parametrize("media_type", ["text/html; charset=utf-8", "application/zip", None])
def test_a_web_page_is_refused_and_not_kept_whatever_it_is_called(server, target, media_type):
    server.media_type = media_type
    server.content = b"\xef\xbb\xbf\n<!DOCTYPE html><title>Sign in</title>" + b" " * 1000
    with pytest.raises(DataError, match="answers with a web page"):
        download(server.address, target)
    assert list(target.parent.iterdir()) == []


def test_a_user_and_a_password_in_the_address_are_sent_and_never_shown(server, target):
    server.password = "me:w@rd"
    address = server.address.replace("://", "://{}@")
    with pytest.raises(DataError, match="HTTP 401") as caught:
        download(address.format("me:secret"), target)
    assert "secret" not in str(caught.value)
    assert download(address.format("me:w%40rd"), target).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "url",
    ["http://[", "http://host:port/a", "http:///a", "http://" + "a" * 70 + "/b", "https://%zz"],
)
def test_malformed_addresses_are_refused_at_once(tmp_path, url):
    with pytest.raises(DataError, match=r"is not a valid address|cannot download"):
        Source(url).fetch(tmp_path)


@pytest.mark.parametrize("path", ["", "a%00b", "..%2f..%2fup", "%2e%2e", "x" * 300, "a%1bb"])
def test_names_that_cannot_be_file_names_are_replaced(server, tmp_path, path):
    found = Source(server.address + path).fetch(tmp_path / "downloads")
    assert found == tmp_path / "downloads" / ("up" if path.endswith("up") else "download")


def test_a_server_that_sends_the_same_part_for_ever_is_given_up(server, target):
    server.sized, server.ranges, server.hang_up = False, False, 1000
    server.content = CONTENT[:1000]
    assert download(server.address, target).stat().st_size == 1000, "nothing says there is more"
    target.unlink()
    server.sized, server.content = True, CONTENT
    with pytest.raises(DataError, match="gave up after 5 attempts without a byte"):
        download(server.address, target)


def test_a_file_that_is_longer_than_its_server_says_is_not_awaited(target):
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n"
    most = []

    class Endless(socketserver.BaseRequestHandler):
        def handle(self):
            self.request.recv(65536)
            with contextlib.suppress(OSError):
                self.request.sendall(head)
                for sent in range(400):  # MB: an end for a client that would take them all
                    self.request.sendall(b"100000\r\n" + bytes(2**20) + b"\r\n")
                    most.append(sent)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Endless) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(DataError, match=r"instead of 9; gave up after 5 attempts"):
            download(f"http://127.0.0.1:{server.server_address[1]}/file.tgz", target)
        server.shutdown()
    assert max(most) < 399
    assert not any(target.parent.glob("*.tgz*"))


def test_a_file_larger_than_the_disk_is_refused_before_it_comes(server, target, monkeypatch):
    monkeypatch.setattr(
        downloading.shutil, "disk_usage", lambda path: type("Usage", (), {"free": 1000})
    )
    with pytest.raises(DataError, match=r"has 300\.0 kB, .* has 1\.0 kB free"):
        download(server.address, target)
    assert not target.exists()


def test_a_folder_that_cannot_be_made_is_named(server, tmp_path):
    (tmp_path / "downloads").write_text("in the way")
    with pytest.raises(DataError, match=r"cannot write .*downloads: .*choose a writable --root"):
        download(server.address, tmp_path / "downloads" / "file.tgz")


def test_addresses_are_shown_without_what_may_be_secret():
    assert (
        public_url("https://me:word@host.example:8000/a/b.zip?token=1")
        == "https://host.example:8000/a/b.zip"
    )


def test_files_that_only_their_query_tells_apart_are_kept_apart(server, tmp_path):
    first = Source(f"{server.address}get?id=1").fetch(tmp_path)
    server.content = CONTENT[:10]
    second = Source(f"{server.address}get?id=2").fetch(tmp_path)
    assert (first.stat().st_size, second.stat().st_size) == (300_000, 10)


def test_a_scheme_that_is_not_spoken_is_refused():
    with pytest.raises(DataError, match=r"scheme 'ftp'.*http, https or file"):
        Source("ftp://host.example/a.zip").fetch(None)


def test_digests_are_compared_and_the_message_names_both(tmp_path):
    path = tmp_path / "a.zip"
    path.write_bytes(b"abc")
    right = "900150983cd24fb0d6963f7d28e17f72"  # of "abc": RFC 1321, appendix A.5
    assert check_digests(path, {"md5": right.upper()}).startswith("ba7816bf")
    with pytest.raises(DataError, match=f"md5 is {right}, expected {'0' * 32}"):
        check_digests(path, {"md5": "0" * 32})


def test_digests_on_the_command_line_are_matched_with_their_files():
    one, two = "a" * 32, "b" * 32
    assert parse_digests("md5", [one], ["x.zip"]) == {"x.zip": one}
    assert parse_digests("md5", [f"y.zip={two}"], ["x.zip", "y.zip"]) == {"y.zip": two}
    with pytest.raises(ConfigError) as caught:
        parse_digests("md5", [one, "x.zip=12", "z.zip=" + two], ["x.zip", "y.zip"])
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("name", ["file.tgz", "file.tgz.part", "file.tgz.part.json"])
def test_a_folder_in_the_place_of_a_download_is_named(server, target, name):
    target.with_name(name).mkdir(parents=True)
    with pytest.raises(DataError, match=rf"{name} is no file.*remove it"):
        download(server.address + "file.tgz", target)
