"""What an adapter's float32 arithmetic really does, asked by running it.

WGSL promises less than IEEE 754: products may be fused into sums, denormals flushed, a quotient
may be off by 2.5 ULP, and NaN and infinity assumed away (WGSL specification, section "Floating
Point Evaluation"). Kernels that need more choose their form by this probe, or work around it.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from engine.gpu.device import Device
from engine.gpu.stage import Stage
from engine.gpu.structs import Field, Struct

F32 = NDArray[np.float32]

ANSWERS = Struct(
    "Answers",
    Field("plain", "f32"),
    Field("named", "f32"),
    Field("barrier", "f32"),
    Field("fused", "f32"),
    Field("factor", "f32"),
    Field("sum", "f32"),
    Field("product", "f32"),
    Field("quotient", "f32"),
    Field("flags", "u32"),
)
FORMS = ("plain", "named", "barrier", "fused")
SAMPLES = 4096
SMALLEST_NORMAL = np.float32(2.0**-126)
DENORMAL = np.float32(2.0**-130)


@dataclass(frozen=True, slots=True)
class Probe:
    """`contracts` says for each way of writing a * b + c whether it came back fused (one rounding);
    `fused` is the built-in fma, which need not be. Division error in ULPs of the exact quotient,
    over normal numbers. `wrong_sums` and `wrong_products` count results of normal numbers, out of
    SAMPLES, that are not the nearest float32."""

    contracts: dict[str, bool]
    factors: bool  # a * b + c * b comes back as (a + c) * b
    flushes_operands: bool  # a denormal operand counts as zero
    flushes_sums: bool
    flushes_products: bool
    division_ulps: float
    wrong_sums: int
    wrong_products: int
    keeps_nan: bool  # infinity - infinity is NaN
    recognises_nan: bool  # a != a holds for a NaN; a compiler may make it an ordered comparison
    keeps_infinity: bool  # 1 / 0 and overflow are infinite

    @property
    def rounds_exactly(self) -> bool:
        """What exact arithmetic on top needs: normal sums and products to nearest, and a barrier
        that holds."""
        return not (self.wrong_sums or self.wrong_products or self.contracts["barrier"])

    def facts(self) -> dict[str, Any]:
        """For a record, in JSON's types."""
        return {
            **{f"contracts_{form}": fused for form, fused in self.contracts.items()},
            "factors": self.factors,
            "flushes_denormal_operands": self.flushes_operands,
            "flushes_denormal_sums": self.flushes_sums,
            "flushes_denormal_products": self.flushes_products,
            "division_ulps": round(self.division_ulps, 3),
            "wrong_sums": self.wrong_sums,
            "wrong_products": self.wrong_products,
            "keeps_nan": self.keeps_nan,
            "recognises_nan": self.recognises_nan,
            "keeps_infinity": self.keeps_infinity,
            "rounds_exactly": self.rounds_exactly,
        }

    def lines(self) -> list[tuple[str, str]]:
        """Key and value a line, for people."""

        def kept(flushed: bool) -> str:
            return "flushed" if flushed else "kept"

        fused = [form for form in ("plain", "named", "barrier") if self.contracts[form]]
        return [
            ("arithmetic a*b+c fused when written", ", ".join(fused) or "in no way tried"),
            ("arithmetic a*b+c*b", "rewritten as (a+c)*b" if self.factors else "as written"),
            ("arithmetic fma()", "fused" if self.contracts["fused"] else "two roundings"),
            (
                "arithmetic denormals",
                f"operands {kept(self.flushes_operands)}, sums {kept(self.flushes_sums)}, "
                f"products {kept(self.flushes_products)}",
            ),
            ("arithmetic division error", f"{self.division_ulps:.2f} ULP"),
            (
                "arithmetic NaN, infinity",
                f"{_yes(self.keeps_nan)}, {_yes(self.keeps_infinity)}; a != a "
                f"{'finds' if self.recognises_nan else 'does not find'} a NaN",
            ),
            (
                "arithmetic sums, products to nearest",
                "yes"
                if not self.wrong_sums + self.wrong_products
                else f"no: {self.wrong_sums} and {self.wrong_products} of {SAMPLES} are not",
            ),
        ]


def _yes(kept: bool) -> str:
    return "kept" if kept else "lost"


def ask(device: Device, a: Any, b: Any, c: Any) -> NDArray[Any]:
    """The adapter's `ANSWERS` `[n]` for operands `[n]`."""
    operands = np.zeros((np.size(a), 4), np.float32)
    operands[:, 0], operands[:, 1], operands[:, 2] = a, b, c
    answers = device.buffer("answers", ANSWERS.size * len(operands))
    parameters = np.array([0, len(operands), 0, 0], np.uint32)
    resources = {
        "parameters": device.upload("parameters", parameters, "UNIFORM|COPY_DST"),
        "operands": device.upload("operands", operands),
        "answers": answers,
    }
    Stage(device, "probe", "engine/gpu/shaders/probe.wgsl").run(resources, -(-len(operands) // 64))
    return np.asarray(device.read(answers, ANSWERS.dtype, count=len(operands)))


def probe(device: Device) -> Probe:
    """Runs one small dispatch and compares it with NumPy."""
    rng = np.random.default_rng(1)
    a = ((1 + rng.random(SAMPLES)) * rng.choice((-1, 1), SAMPLES)).astype(np.float32)
    b = (1 + rng.random(SAMPLES)).astype(np.float32)
    sizes = np.exp2(rng.integers(-30, 31, SAMPLES)).astype(np.float32)
    one, zero, inf = np.float32(1), np.float32(0), np.float32(np.inf)
    # Rows behind the samples, by index: see the reads below.
    single = np.array(
        [
            (DENORMAL, zero, zero),
            (SMALLEST_NORMAL * np.float32(1.5), -SMALLEST_NORMAL, zero),
            (SMALLEST_NORMAL, np.float32(0.25), zero),
            (one, zero, zero),
            (inf, -inf, zero),
            (np.float32(np.nan), one, zero),
            (np.float32(3e38), np.float32(3e38), zero),
        ],
        np.float32,
    )
    # c cancels the rounded product: what is left is nothing, or what the rounding took.
    answers = ask(
        device,
        np.concatenate([a * sizes, single[:, 0]]),
        np.concatenate([b, single[:, 1]]),
        np.concatenate([-((a * sizes) * b), single[:, 2]]),
    )
    # A second set for the common factor: c like a, so that the two ways round apart.
    c = rng.permutation(a * sizes)
    factored = ask(device, a * sizes, b, c)["factor"]
    separate, joined = (a * sizes) * b + c * b, ((a * sizes) + c) * b
    many, few = answers[:SAMPLES], answers[SAMPLES:]
    x, y = (a * sizes).astype(np.float64), b.astype(np.float64)
    exact = x / y
    ulp = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    with np.errstate(invalid="ignore"):
        overflowed = bool(np.isinf(few["sum"][6]) and np.isinf(few["product"][6]))
    return Probe(
        contracts={form: bool((many[form] != 0).any()) for form in FORMS},
        factors=bool(((factored != separate) & (factored == joined)).any()),
        flushes_operands=bool(few["flags"][0] & 2 or few["sum"][0] != DENORMAL),
        flushes_sums=bool(few["sum"][1] == 0),
        flushes_products=bool(few["product"][2] == 0),
        division_ulps=float((np.abs(many["quotient"].astype(np.float64) - exact) / ulp).max()),
        wrong_sums=int((many["sum"] != (a * sizes) + b).sum()),
        wrong_products=int((many["product"] != (a * sizes) * b).sum()),
        keeps_nan=bool(np.isnan(few["sum"][4])),
        recognises_nan=bool(few["flags"][5] & 1),
        keeps_infinity=bool(np.isinf(few["quotient"][3])) and overflowed,
    )
