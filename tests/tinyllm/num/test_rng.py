import numpy as np
import pytest

from tinyllm.num.rng import PCG32, PURPOSES

# Output of the generator author's pcg32-demo, seed 42, stream 54, round 1.
DEMO_WORDS = [0xA15C02B7, 0x7B47F409, 0xBA1D3330, 0x83D2F293, 0xBFA4784B, 0xCBED606E]
DEMO_COINS = "HHTTTHTHHHTHTTTHHHHHTTTHHHTHTHTHTTHTTTHHHHHHTTTTHHTTTTTHTTTTTTTHT"
DEMO_ROLLS = "3 4 1 1 2 2 3 2 4 3 2 4 3 3 5 2 3 1 3 1 5 1 4 1 5 6 4 6 6 2 6 3 3"
DEMO_CARDS = (
    "Qd Ks 6d 3s 3d 4c 3h Td Kc 5c Jh Kd Jd As 4s 4h Ad Th Ac Jc 7s Qs 2s 7h Kh 2d "
    "6c Ah 4d Qh 9h 6s 5s 2c 9c Ts 8d 9s 3c 8c Js 5d 2h 6h 7d 8s 9d 5h 8h Qc 7c Tc"
)


def words(rng, n):
    return [rng.next_u32() for _ in range(n)]


def test_words_coins_rolls_and_cards_match_the_published_demo():
    rng = PCG32(42, seq=54)
    assert words(rng, 6) == DEMO_WORDS
    assert "".join("TH"[rng.below(2)] for _ in range(65)) == DEMO_COINS
    assert " ".join(str(rng.below(6) + 1) for _ in range(33)) == DEMO_ROLLS
    cards = [number + suit for number in "A23456789TJQK" for suit in "hcds"]
    rng.shuffle(cards)
    assert " ".join(cards) == DEMO_CARDS


def test_the_default_stream_is_54():
    assert words(PCG32(42), 2) == DEMO_WORDS[:2]
    assert words(PCG32(0), 2) == [0x47C28B93, 0xB98F6A27]


def test_streams_of_one_seed_differ():
    assert words(PCG32(42, seq=1), 4) != words(PCG32(42, seq=2), 4)


def test_uniform_takes_53_bits_from_two_words():
    a, b = words(PCG32(5), 2)
    assert PCG32(5).uniform() == ((a >> 5) * 2**26 + (b >> 6)) * 2.0**-53


@pytest.mark.parametrize("n", [0, 1, 2, 7, 5000])
def test_uniforms_are_n_calls_of_uniform_and_leave_the_stream_where_they_would(n):
    batch, single = PCG32(5, seq=9), PCG32(5, seq=9)
    drawn = batch.uniforms(n)
    assert drawn.dtype == np.float64 and drawn.shape == (n,)
    assert drawn.tolist() == [single.uniform() for _ in range(n)]
    assert words(batch, 3) == words(single, 3)


def test_uniforms_lie_in_the_unit_interval_and_fill_it():
    u = PCG32(1).uniforms(20_000)
    assert u.min() >= 0 and u.max() < 1
    counts = np.bincount((u * 10).astype(int), minlength=10)
    assert abs(counts - 2000).max() < 5 * np.sqrt(1800)


def test_uniforms_refuses_a_negative_count():
    with pytest.raises(ValueError):
        PCG32(0).uniforms(-1)


class OneWordAfterAnother(PCG32):
    def __init__(self, script):
        super().__init__(0)
        self.script = iter(script)

    def next_u32(self):
        return next(self.script) if hasattr(self, "script") else super().next_u32()


def test_below_rejects_the_draws_that_would_bias_it():
    n = 3 * 2**30  # 2^32 mod n = 2^30: draws under it are rejected
    assert OneWordAfterAnother([0, 2**30 - 1, n + 5]).below(n) == 5
    assert OneWordAfterAnother([2**30]).below(n) == 2**30


@pytest.mark.parametrize("n", [1, 2, 7, 2**32])
def test_below_stays_below(n):
    rng = PCG32(8)
    assert all(0 <= rng.below(n) < n for _ in range(200))


@pytest.mark.parametrize("n", [0, -1, 2**32 + 1])
def test_below_refuses_an_impossible_bound(n):
    with pytest.raises(ValueError):
        PCG32(0).below(n)


def test_shuffle_keeps_the_elements_and_works_on_arrays():
    xs = np.arange(50)
    PCG32(2).shuffle(xs)
    assert sorted(xs) == list(range(50)) and xs.tolist() != list(range(50))
    same = list(range(50))
    PCG32(2).shuffle(same)
    assert xs.tolist() == same


def test_a_saved_state_continues_the_stream():
    rng = PCG32(3)
    rng.uniforms(5)
    saved = rng.state()
    ahead = words(rng, 4)
    rng.set_state(saved)
    assert words(rng, 4) == ahead
    other = PCG32(99, seq=1)
    other.set_state(saved)
    assert words(other, 4) == ahead


def test_substreams_depend_on_seed_and_purpose_alone():
    assert words(PCG32(0).substream("init"), 2) == [0x79B41A15, 0x8E500260]
    used = PCG32(0)
    used.uniforms(10)
    assert words(used.substream("init"), 2) == [0x79B41A15, 0x8E500260]
    firsts = {words(PCG32(seed).substream(purpose), 1)[0] for seed in (0, 1, 2**64 - 1) for purpose in PURPOSES}
    assert len(firsts) == 15


def test_purposes_are_numbered_as_the_contract_says():
    assert PURPOSES == {"init": 1, "dropout": 2, "shuffle": 3, "sample": 4, "mutation": 5}
    with pytest.raises(KeyError):
        PCG32(0).substream("lunch")
