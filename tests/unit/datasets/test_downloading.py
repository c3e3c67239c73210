"""Downloads over connections that break, from servers that resume, do not, or changed the file."""

from __future__ import annotations

import random

import pytest
from published_files import serving

from benchmark.core.errors import DataError
from benchmark.datasets.io import sources
from benchmark.datasets.io.sources import check_digests, download, parse_source, public_url

CONTENT = random.Random(0).randbytes(300_000)


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr(sources, "FIRST_WAIT", 0.0)


@pytest.fixture
def server():
    with serving(CONTENT) as running:
        yield running


@pytest.fixture
def refused(server, messages):
    """Return what checks that a block is refused; the address of the server varies."""
    messages.folders[server.address] = "ADDRESS/"
    return messages.raised


@pytest.fixture
def target(tmp_path):
    return tmp_path / "downloads" / "file.tgz"


def leave_part(target, content, version='"first"'):
    """Leaves what a download that was killed leaves."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.with_name("file.tgz.part").write_bytes(content)
    target.with_name("file.tgz.version").write_text(version)


def test_a_file_arrives_whole_and_alone(server, target):
    assert download(server.address + "file.tgz", target).read_bytes() == CONTENT
    assert [path.name for path in target.parent.iterdir()] == ["file.tgz"]
    download(server.address + "file.tgz", target)
    assert server.asked == [None], "a file that is there is not fetched again"


def test_a_connection_that_ends_midway_is_resumed_where_it_ended(server, target):
    server.hang_up = 100_000
    assert download(server.address, target).read_bytes() == CONTENT
    assert server.asked == [None, "bytes=100000-", "bytes=200000-"]
    assert server.sent == len(CONTENT), "no byte was sent twice"


def test_a_killed_download_is_resumed_by_the_next_command(server, target):
    leave_part(target, CONTENT[:120_000])
    assert download(server.address, target).read_bytes() == CONTENT
    assert server.asked == ["bytes=120000-"]


def test_a_server_without_ranges_makes_the_download_start_over(server, target):
    server.ranges = False
    leave_part(target, CONTENT[:120_000])
    assert download(server.address, target).read_bytes() == CONTENT
    assert server.sent == len(CONTENT)


@pytest.mark.parametrize("change", [{"version": '"older"'}, {"version": ""}])
def test_another_version_on_the_server_makes_the_download_start_over(server, target, change):
    leave_part(target, b"\0" * 120_000, **change)
    assert download(server.address, target).read_bytes() == CONTENT


def test_a_part_that_is_whole_already_is_taken(server, target):
    leave_part(target, CONTENT)
    assert download(server.address, target).read_bytes() == CONTENT
    assert server.sent == 0


def test_a_server_that_stays_away_ends_with_what_to_do_and_keeps_what_arrived(
    server, target, refused
):
    leave_part(target, CONTENT[:120_000])
    server.states = [503] * sources.ATTEMPTS
    with refused():
        download(server.address, target)
    assert download(server.address, target).read_bytes() == CONTENT
    assert server.sent == len(CONTENT) - 120_000


def test_a_server_that_recovers_is_waited_for(server, target):
    server.states = [500, 429]
    assert download(server.address, target).read_bytes() == CONTENT


def test_a_wrong_address_is_not_tried_again(server, target, refused):
    server.states = [404]
    with refused():
        download(server.address + "file.tgz", target)
    assert len(server.asked) == 1
    assert not target.exists()


def test_a_web_page_is_refused_and_not_kept(server, target, refused):
    server.media_type = "text/html; charset=utf-8"
    with refused():
        download(server.address, target)
    assert not target.exists()


def test_a_user_and_a_password_in_the_address_are_sent_and_never_shown(server, target):
    server.password = "me:w@rd"
    address = server.address.replace("://", "://{}@")
    with pytest.raises(DataError) as caught:
        download(address.format("me:secret"), target)
    assert "secret" not in str(caught.value)
    assert download(address.format("me:w%40rd"), target).read_bytes() == CONTENT


@pytest.mark.parametrize(
    "url",
    ["http://[", "http://host:port/a", "http:///a", "http://" + "a" * 70 + "/b", "https://%zz"],
)
def test_malformed_addresses_are_refused_at_once(tmp_path, url):
    with pytest.raises(DataError):
        download(parse_source(url)[1], tmp_path / "a")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize("path", ["", "a%00b", "..%2f..%2fup", "%2e%2e"])
def test_names_that_cannot_be_file_names_are_replaced(path):
    found = parse_source(f"http://host.example/{path}")[0]
    assert str(found) == ("up" if path.endswith("up") else "download")


def test_a_server_that_sends_the_same_part_for_ever_is_given_up(server, target):
    server.sized = False
    server.ranges = False
    server.hang_up = 1000
    server.content = CONTENT[:1000]
    assert download(server.address, target).stat().st_size == 1000, "nothing says there is more"
    target.unlink()
    server.sized = True
    server.content = CONTENT
    with pytest.raises(DataError, match="1,000 bytes"):
        download(server.address, target)


def test_addresses_are_shown_without_what_may_be_secret():
    assert (
        public_url("https://me:word@host.example:8000/a/b.zip?token=1")
        == "https://host.example:8000/a/b.zip"
    )


def test_a_scheme_that_is_not_spoken_is_refused(messages):
    with messages.raised():
        parse_source("ftp://host.example/a.zip")


def test_digests_are_compared_and_the_message_names_both(tmp_path, messages):
    path = tmp_path / "a.zip"
    path.write_bytes(b"abc")
    right = "900150983cd24fb0d6963f7d28e17f72"  # of "abc": RFC 1321, appendix A.5
    assert check_digests(path, {"md5": right.upper()}).startswith("ba7816bf")
    with messages.raised():
        check_digests(path, {"md5": "0" * 32})
