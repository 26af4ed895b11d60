"""Calls from many threads, in forked workers, and with Ctrl-C."""

import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import rapt


def tensors(length=400, heads=4):
    rng = np.random.default_rng(3)
    return [rng.standard_normal((1, heads, length, 32), np.float32) for _ in range(3)]


def test_the_interpreter_runs_on_while_rapt_works():
    q, k, v = tensors(3000)
    counted = 0
    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(rapt.attention, q, k, v, threads=1)
        while not working.done():
            counted += 1
            time.sleep(0)
        working.result()
    assert counted > 100


def test_eight_threads_at_once_give_the_same_bits():
    q, k, v = tensors()
    expected = rapt.attention(q, k, v)
    dout = np.ones_like(q)
    gradients = rapt.attention_backward(q, k, v, dout)

    def work(_):
        for _ in range(5):
            np.testing.assert_array_equal(rapt.attention(q, k, v), expected)
            np.testing.assert_array_equal(rapt.attention_backward(q, k, v, dout).dkey, gradients.dkey)
            with pytest.raises(ValueError):
                rapt.attention(q, k, v[:, :1])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))


def test_eight_threads_share_a_cache():
    cache = rapt.KvCache(kv_heads=1, head_size=4, sequences=8, page_size=16, pages=64)
    ids = [cache.add() for _ in range(8)]
    token = np.ones((1, 1, 1, 4), np.float32)

    def work(sequence):
        for n in range(100):
            cache.append([sequence], n * token, token)
            out = rapt.attention(token, cache=cache.view([sequence]))
            np.testing.assert_allclose(out, 1, rtol=1e-6)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, ids))
    assert [cache.length(n) for n in ids] == [100] * 8
    for n in ids:
        seen = cache.view([n])
        stored = np.concatenate([seen.key[page, 0, :, 0] for page in seen.page_table[0]])[:100]
        np.testing.assert_array_equal(stored, np.arange(100))


def _attend(seed):
    q, k, v = tensors()
    return rapt.attention(q + seed, k, v)


# Since Python 3.12, forking a process with threads gives a warning; our threads support it.
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_call_in_a_forked_worker_works():
    expected = [_attend(n) for n in range(4)]  # the pool's threads are running when the process forks
    with multiprocessing.get_context("fork").Pool(2) as pool:
        for mine, theirs in zip(expected, pool.map_async(_attend, range(4)).get(timeout=120)):
            np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(_attend(0), expected[0])


@pytest.fixture
def ctrl_c():
    """Ctrl-C raises KeyboardInterrupt, also in a process that was started in the background and ignores SIGINT."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_for_the_call_and_spoils_nothing(ctrl_c):
    q, k, v = tensors(1000)
    expected = rapt.attention(q, k, v)
    out = np.zeros_like(q)
    timer = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))
    deadline = time.monotonic() + 60
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        while time.monotonic() < deadline:
            out.fill(0)
            rapt.attention(q, k, v, out=out)
    timer.join()
    assert (out == 0).all() or (out == expected).all()  # no call was interrupted halfway
    np.testing.assert_array_equal(rapt.attention(q, k, v), expected)
