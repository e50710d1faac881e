"""
Value at risk
=============

How much can a portfolio lose in one day, on the worst day in a hundred? Half a million days are
simulated: correlated normal numbers move the logarithms of six prices, and a quantile of the
outcomes is the value at risk. Random draws, Cholesky factor, matrix product and quantile are
functions of `vkdispatch.numpy`. Only the results come back to the host.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import norm

import vkdispatch.numpy as vnp

DAYS = 500_000
worth = np.array([30, 25, 20, 15, 20, -10]) * 1e3  # the last one is sold short
volatility = np.array([0.012, 0.018, 0.025, 0.009, 0.031, 0.022])  # a day
correlation = np.full((6, 6), 0.35) + 0.65 * np.eye(6)
covariance = volatility[:, None] * correlation * volatility

factor = vnp.linalg.cholesky(vnp.asarray(covariance.astype(np.float32)))
draws = vnp.random.default_rng(7).normal(size=(DAYS, 6)).astype(vnp.float32)
moves = vnp.exp(draws @ factor.T) - 1
outcome = moves @ vnp.asarray(worth.astype(np.float32))

at_risk = float(-vnp.quantile(outcome, 0.01))
shortfall = float(-vnp.mean(outcome[outcome < -at_risk]))
linear = norm.ppf(0.99) * np.sqrt(worth @ covariance @ worth)
counts, edges = (each.numpy() for each in vnp.histogram(outcome, bins=160, range=(-7500, 7500)))
print(f"value at risk {at_risk:.0f}, expected shortfall {shortfall:.0f}; linear approximation {linear:.0f}")

plt.figure(figsize=(9, 4.8), layout="constrained")
middles = (edges[1:] + edges[:-1]) / 2
colours = np.where(middles < -at_risk, "#b91c1c", "#94a3b8")
plt.bar(middles, counts, width=np.diff(edges), color=colours)
for loss, name, height in ((at_risk, "value at risk, 99 %", 0.55), (shortfall, "expected shortfall", 0.3)):
    plt.axvline(-loss, ymax=height, color="black", linewidth=1)
    plt.text(-loss - 80, height * counts.max() * 1.05, f"{name}\n{loss:,.0f}", ha="right", va="top")
plt.xlabel("gain in a day")
plt.yticks([])
plt.gca().spines[["left", "right", "top"]].set_visible(False)
plt.xlim(-7500, 7500)
plt.show()
