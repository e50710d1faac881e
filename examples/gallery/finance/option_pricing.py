"""
Pricing options by chance
=========================

A call option is the right to buy a share at a fixed price on a fixed date. Black and Scholes (1973)
give its value as a formula. For options without a formula, the mean over many simulated price paths
has to do. Here each invocation simulates one path, day by day, with normal numbers from its own
Philox stream. The error falls as one over the square root of the number of paths.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, u32

PRICE, STRIKE, RATE, VOLATILITY, DAYS = 100.0, 105.0, 0.03, 0.25, 128
PATHS, KEPT = 1 << 17, 2000


@vd.shader("payoff.size")
def simulate(payoff: Buff[f32], paths: Buff[f32], seed: Const[u32]) -> None:
    i = vc.global_invocation_id().x
    rng = vc.random.Philox(seed, sequence=i)
    trend = (RATE - VOLATILITY**2 / 2) / DAYS
    logarithm = vc.log(PRICE)
    for day in vc.range(DAYS):
        logarithm += rng.normal(trend, VOLATILITY / DAYS**0.5)
        if i < KEPT:
            paths[i, day] = vc.exp(logarithm)
    payoff[i] = np.exp(-RATE) * vc.max(vc.exp(logarithm) - STRIKE, 0)


payoff, paths = vd.Buffer(PATHS, vd.float32), vd.Buffer((KEPT, DAYS), vd.float32)
simulate(payoff, paths, 1973)

d = (np.log(PRICE / STRIKE) + RATE + VOLATILITY**2 / 2) / VOLATILITY
exact = PRICE * norm.cdf(d) - STRIKE * np.exp(-RATE) * norm.cdf(d - VOLATILITY)
count = np.arange(1, PATHS + 1)
values = payoff.read(0).astype(float)
mean = np.cumsum(values) / count
band = 2 * values.std() / np.sqrt(count)
print(f"simulated {mean[-1]:.3f} +- {band[-1]:.3f}, Black-Scholes {exact:.3f}")

figure, panels = plt.subplots(1, 2, figsize=(10.5, 4.4), layout="constrained")
drawn = paths.read(0)[:300]
for path in drawn:
    panels[0].plot(
        np.arange(DAYS), path, linewidth=0.5, alpha=0.5, color=plt.cm.viridis(min(path[-1] / 190, 1))
    )
panels[0].axhline(STRIKE, color="black", linestyle="--", linewidth=1)
panels[0].set(xlabel="day", ylabel="price of the share", xlim=(0, DAYS - 1))
panels[1].fill_between(count, exact - band, exact + band, color="#e0e7ff", label="two standard errors")
panels[1].semilogx(count, mean, color="#4338ca", label="mean of the paths")
panels[1].axhline(exact, color="black", linestyle="--", linewidth=1, label="Black and Scholes")
panels[1].set(xlabel="paths", ylabel="value of the option", xlim=(50, PATHS), ylim=(exact - 3, exact + 3))
panels[1].legend(frameon=False)
plt.show()
