"""`Stream`: rounds, releases and errors."""

import itertools

import pytest
from continual import KINDS, events, made

from discreet import BinaryMechanism, Stream, _core
from discreet.errors import EntropyError, ParameterError, StateError
from discreet.reference.node_sums import NodeSums
from discreet.streams import EpochMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism


@pytest.mark.parametrize("kind", KINDS)
def test_running_counts_are_released_and_rare_items_are_not(kind):
    stream = made(kind, delta=1e-13).start()  # each of 20 rare items is released with a chance of at most 1e-13
    for number in range(1, 21):
        release = stream.step(events(40, rare=[f"secret-{number}"]))
        assert stream.round == number
        assert set(release.items) <= {"common", "other"}
    counts = dict(release)
    assert abs(counts["common"] - 800) < 7 * stream.mechanism.deviation(20)
    assert abs(counts["other"] - 400) < 7 * stream.mechanism.deviation(20)
    assert release.guarantee == stream.guarantee
    assert "round 20" in release.notes[0]
    assert list(stream.show()) == list(release)


class Interrupted:
    """The noise of a stream, with an interrupt at one of its draws."""

    def __init__(self, noise, at):
        self.noise, self.left = noise, at

    def items(self):
        return self.noise.items()

    def draw(self, *given):
        return self._drawn(self.noise.draw(*given))

    def draw_from(self, *given):
        return self._drawn(self.noise.draw_from(*given))

    def _drawn(self, noise):
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return noise


@pytest.mark.parametrize("kind", [BinaryMechanism, HonakerMechanism, HybridMechanism])
@pytest.mark.parametrize("rounds", [1, 6, 7, 8])
def test_no_noise_is_missing_after_an_interrupt(kind, rounds, monkeypatch):
    # Nothing interrupts the table in Rust. The reference draws through `Interrupted`.
    monkeypatch.setattr(_core, "NodeSums", NodeSums)

    def begun():
        stream = Stream(made(kind))
        stream._begin(stream.mechanism, b"k" * 32, "text")
        for _ in range(rounds - 1):
            stream.step(events(40))
        return stream

    late = [["late", "later"]] * 40
    undisturbed = begun()
    expected, after = list(undisturbed.step(late)), list(undisturbed.step(late))
    for at in itertools.count(1):
        stream = begun()
        stream.step(late, release=False)
        noise = stream._running.noise
        stream._running.noise = Interrupted(noise, at)
        try:
            stream.show()
            break
        except KeyboardInterrupt:
            stream._running.noise = noise
        assert list(stream.show()) == expected
        assert list(stream.step(late)) == after
    assert at > 1


@pytest.mark.parametrize("kind", KINDS)
def test_two_streams_draw_different_noise(kind):
    mechanism = made(kind, rho=0.05)
    names = [f"item-{n}" for n in range(40)]
    shown = []
    for _ in range(2):
        stream = mechanism.start()
        # If the noise has a standard deviation above 3, fewer than half of 40 counts agree by chance.
        assert mechanism.deviation(1) > 3
        shown.append(dict(stream.step([[name] for name in names] * 600)))
    first, second = shown
    assert first.keys() == second.keys() == set(names)
    assert sum(first[name] == second[name] for name in names) < 20


def test_two_items_of_a_stream_draw_different_noise():
    stream = made(BinaryMechanism, rho=0.001).start()
    counts = dict(stream.step([[f"item-{n}"] for n in range(40)] * 1000))
    assert len(set(counts.values())) > 20


def test_events_that_close_their_own_round_are_refused():
    stream = made(BinaryMechanism).start()

    def nested():
        yield ["a"]
        stream.step([["a"]] * 300)

    with pytest.raises(StateError, match="is closed"):
        stream.step(nested())
    assert (stream.round, stream._running.items.counts.tolist()) == (1, [300])


def test_rounds_can_be_empty_skipped_or_unpublished():
    stream = made(BinaryMechanism).start()
    assert len(stream.step([])) == 0
    assert len(stream.step(events(500), release=False)) == 0
    later = stream.step([], round=40)
    assert stream.round == 40
    assert set(later.items) == {"common", "other"}
    empty = made(BinaryMechanism).start().show()
    assert [(name, kind) for name, _, kind in empty.columns] == [(n, k) for n, _, k in later.columns]


def test_a_stream_that_restarts_resets_its_counts():
    stream = BinaryMechanism.from_rho(rho=5.0, delta=1e-6, l0=1, horizon=3, restarts=True).start()
    for _ in range(3):
        stream.step(events(300))
    first = dict(stream.show())["common"]
    assert dict(stream.step(events(300)))["common"] < first / 2
    assert stream.round == 4


def test_noise_of_two_periods_differs():
    mechanism = BinaryMechanism(sigma=9.0, delta=1e-6, l0=1, horizon=4, restarts=True)
    assert not {node for node, _ in mechanism.nodes(3)} & {node for node, _ in mechanism.nodes(7)}
    assert mechanism.starts_over(2, 5)
    assert not mechanism.starts_over(2, 4)


def test_threads_do_not_share_a_round():
    from threading import Thread

    for _ in range(30):
        stream = made(BinaryMechanism, rho=50.0).start()
        threads = [Thread(target=stream.step, args=([["a"]] * 300,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert stream.round == 4
        assert abs(dict(stream.show())["a"] - 1200) < 50


@pytest.mark.parametrize("kind", [EpochMechanism, HybridMechanism])
def test_skipping_billions_of_rounds_is_fast(kind):
    stream = made(kind).start()
    stream.step(events(10))
    assert not stream.step([], round=2**39).seeded
    assert stream.round == 2**39


@pytest.mark.parametrize("kind", [EpochMechanism, HybridMechanism])
def test_a_stream_without_end_works_up_to_its_last_round(kind):
    for rho, delta, l0 in [(1e-12, 1e-20, 1), (1e4, 0.5, 1), (1e-7, 1e-270, 2**20)]:
        mechanism = made(kind, rho, delta, l0)
        stream = mechanism.start()
        assert [stream.step(events(10), round=number).seeded for number in (1, 2**40 - 1, 2**40)] == [False] * 3
        assert mechanism.threshold(2**40) > mechanism.threshold(1)
    for rho, delta, l0 in [(1e-18, 1e-20, 1), (1e-6, 1e-300, 2**30)]:
        with pytest.raises(ParameterError, match="too small"):
            made(kind, rho, delta, l0)


def test_closed_rounds_and_rounds_past_the_horizon_are_refused():
    stream = made(BinaryMechanism, horizon=3).start()
    stream.step(events(10), round=2)
    for closed in (1, 2):
        with pytest.raises(StateError, match="closed"):
            stream.step(events(10), round=closed)
    with pytest.raises(StateError, match="horizon"):
        stream.step(events(10), round=4)
    stream.step(events(10))
    with pytest.raises(StateError, match="horizon"):
        stream.step(events(10))
    stream.close()
    with pytest.raises(StateError, match="closed"):
        stream.step(events(10))


def test_thousands_of_items_keep_their_own_counts():
    stream = made(BinaryMechanism, rho=1e-3).start()
    names = [f"item-{n}" for n in range(3000)]
    for part in (names[:10], names[5:2000], names, names):
        stream.step([[name] for name in part], release=False)
    running = stream._running
    counts = dict(zip(names, running.items.counts[running.items.labels.find(names)].tolist(), strict=True))
    assert counts == {name: 2 + (n < 2000 and n >= 5) + (n < 10) for n, name in enumerate(names)}
    assert running.items.labels.items() == 3000


def test_the_limits_of_square_root_name_other_mechanisms():
    with pytest.raises(ParameterError, match=r"at most 8,192 rounds.*HonakerMechanism"):
        made(SquareRootMechanism, horizon=8193)
    with pytest.raises(ParameterError, match=r"sigma of at most.*HonakerMechanism"):
        made(SquareRootMechanism, l0=2**30)
    assert isinstance(Stream.recommended(rho=0.5, delta=1e-6, l0=2**30, horizon=1000), HonakerMechanism)


def test_a_stream_needs_a_continual_mechanism():
    with pytest.raises(ParameterError, match="continual"):
        Stream("BinaryMechanism")


def test_a_system_without_randomness_is_an_entropy_error(monkeypatch):
    def refuse(_):
        raise NotImplementedError

    monkeypatch.setattr("os.urandom", refuse)
    with pytest.raises(EntropyError):
        BinaryMechanism.from_rho(rho=1.0, delta=1e-6, l0=1, horizon=4).start()
