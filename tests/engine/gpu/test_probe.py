"""The arithmetic probe: what it says of this adapter, and that it can tell adapters apart."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from engine.gpu import probe as probing
from engine.gpu.probe import ANSWERS, DENORMAL, SAMPLES, ask, probe


def test_this_adapter_supports_exact_arithmetic(device: Any) -> None:
    found = probe(device)
    assert found.rounds_exactly
    assert 0 <= found.division_ulps <= 2.5  # what WGSL allows
    assert set(found.facts()) >= {"contracts_plain", "contracts_barrier", "division_ulps"}
    assert all(isinstance(value, bool | int | float) for value in found.facts().values())
    assert len(found.lines()) == 7


def test_answers_are_the_asked_operations(device: Any) -> None:
    got = ask(device, [3.0, 8.0], [2.0, 4.0], [1.0, -1.0])
    assert got["plain"].tolist() == got["barrier"].tolist() == [7.0, 31.0]
    assert got["sum"].tolist() == [5.0, 12.0]
    assert got["product"].tolist() == [6.0, 32.0]
    assert got["quotient"].tolist() == [1.5, 2.0]
    assert got["flags"].tolist() == [0, 0]


def fake(fused: bool, flush: bool, bias: int) -> Any:
    """An adapter that fuses and factors, flushes denormals or is off by some ULPs in quotients."""

    def answer(_: Any, a: Any, b: Any, c: Any) -> Any:
        a, b, c = (np.asarray(v, np.float32) for v in (a, b, c))
        if flush:
            a, b = (np.where(np.abs(v) < 2.0**-126, np.float32(0), v) for v in (a, b))
        out = np.zeros(len(a), ANSWERS.dtype)
        with np.errstate(all="ignore"):
            exact = a.astype(np.float64) * b.astype(np.float64)
            for form in probing.FORMS:
                contracted = fused and form != "barrier"
                out[form] = exact + c if contracted else a * b + c
            out["factor"] = (a + c) * b if fused else a * b + c * b
            out["sum"], out["product"], out["quotient"] = a + b, a * b, a / b
            if flush:
                for name in ("sum", "product"):
                    out[name] = np.where(np.abs(out[name]) < 2.0**-126, 0, out[name])
            quotient = out["quotient"]
            out["quotient"][np.isfinite(quotient)] += bias * np.spacing(
                quotient[np.isfinite(quotient)]
            )
        out["flags"] = np.isnan(a) | (a == 0) << 1
        return out

    return answer


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("flush", [False, True])
@pytest.mark.parametrize("bias", [0, 2])
def test_it_tells_adapters_apart(
    monkeypatch: pytest.MonkeyPatch, fused: bool, flush: bool, bias: int
) -> None:
    monkeypatch.setattr(probing, "ask", fake(fused, flush, bias))
    found = probe(None)  # type: ignore[arg-type]
    assert found.contracts["plain"] == found.contracts["named"] == fused
    assert not found.contracts["barrier"]
    assert found.factors == fused
    assert found.flushes_operands == found.flushes_sums == found.flushes_products == flush
    assert bias <= found.division_ulps <= bias + 0.51
    assert (
        found.keeps_nan and found.recognises_nan and found.keeps_infinity and found.rounds_exactly
    )
    assert not replace(found, wrong_sums=SAMPLES).rounds_exactly
    assert not replace(found, contracts={**found.contracts, "barrier": True}).rounds_exactly
    assert DENORMAL > 0
