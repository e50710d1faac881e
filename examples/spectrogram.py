"""Spectrogram of a spoken sentence: window, transform and decibels in one kernel.

Run as a program it writes spectrogram.png (or what `--output` names) and fails if the device and SciPy
disagree. The recording is Debian's (package alsa-utils, "front, center"); a WAV file of your own may be
named instead.
"""

import argparse
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import wave
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import signal

import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import Buff, Const, f32, u32

Samples = npt.NDArray[Any]

OUTPUT = Path("spectrogram.png")  # in the current folder
INSTALLED = Path("/usr/share/sounds/alsa/Front_Center.wav")
PACKAGE = "alsa-utils"
LENGTH, HOP = 1000, 125  # samples of a frame, and from one frame to the next
FLOOR = 1e-10  # of the power of a full sine: -100 dB
TOLERANCE = 1e-2  # dB, where there is any sound


class NoRecordingError(RuntimeError):
    """There is no recording, and none can be obtained here."""


def find_recording() -> Path:
    """Return the path of the recording: installed, kept from before, or taken out of the Debian package.

    Raises NoRecordingError.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vkdispatch-examples"
    kept = cache / INSTALLED.name
    for path in (INSTALLED, kept):
        if path.exists():
            return path
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise NoRecordingError(f"no {INSTALLED}, and no apt-get to obtain {PACKAGE} with; name a WAV file")
    with tempfile.TemporaryDirectory() as folder:
        # apt checks the signature; nothing is installed
        fetch = ["apt-get", "-q", "download", PACKAGE]
        done = subprocess.run(fetch, cwd=folder, capture_output=True, text=True, check=False)
        packages = list(Path(folder).glob("*.deb"))
        if done.returncode or not packages:
            raise NoRecordingError(f"no {INSTALLED}, and `{' '.join(fetch)}` failed: {done.stderr.strip()}")
        unpack = ["dpkg-deb", "--fsys-tarfile", str(packages[0])]
        archive = subprocess.run(unpack, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        member = files.extractfile(f".{INSTALLED}")
        if member is None:
            raise NoRecordingError(f"{packages[0].name} has no {INSTALLED}")
        cache.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(member.read())
    return kept


def read_wav(path: Path) -> tuple[Samples, int]:
    """Return the first channel of 16-bit samples, as float32 from -1 to 1, and their rate in Hz."""
    with wave.open(str(path)) as file:
        if file.getsampwidth() != 2:
            raise ValueError(f"{path}: expected 16 bits a sample, got {8 * file.getsampwidth()}")
        frames = np.frombuffer(file.readframes(file.getnframes()), "<i2")
        samples = frames.reshape(-1, file.getnchannels())[:, 0]
        return samples.astype(np.float32) / 32768, file.getframerate()


@vd.map
def windowed(samples: Buff[f32], window: Buff[f32], hop: Const[u32]) -> None:
    """Read a sample of a frame; frames overlap, and no array of them is ever made."""
    op = vd.fft.read_op()
    # a real transform's values are counted as in an RFFTBuffer, whose rows hold a spectrum
    frame = op.io_index // (2 * (op.fft_size // 2 + 1))
    op.register.real = samples[frame * hop + op.fft_index] * window[op.fft_index]
    op.register.imag = 0


@vd.map
def decibels(levels: Buff[f32], gain: Const[f32]) -> None:
    """Write the power of a frequency in decibels."""
    op = vd.fft.write_op()
    value = op.register
    power = (value.real * value.real + value.imag * value.imag) * gain
    levels[op.io_index] = vc.log(vc.max(power, FLOOR)) * (10 / np.log(10))


def spectrogram(samples: Samples, window: Samples, hop: int) -> Samples:
    """Return the power of each frame and frequency, in dB of a sine of amplitude 1: (frames, frequencies)."""
    length = len(window)
    frames = 1 + (len(samples) - length) // hop
    levels = vd.Buffer((frames, length // 2 + 1), vd.float32)
    gain = (2 / window.sum(dtype=np.float64)) ** 2
    vd.fft.fft(
        *(levels, gain),
        *(vd.asbuffer(samples), vd.asbuffer(window), hop),
        buffer_shape=(frames, length),
        r2c=True,
        input_map=windowed,
        output_map=decibels,
    )
    result: Samples = levels.read(0)
    return result


def scipy_spectrogram(samples: Samples, window: Samples, hop: int) -> Samples:
    """Do the same by SciPy, in double precision."""
    _, _, magnitude = signal.spectrogram(
        samples.astype(np.float64),
        window=window.astype(np.float64),
        noverlap=len(window) - hop,
        detrend=False,
        scaling="spectrum",
        mode="magnitude",
    )
    levels: Samples = 10 * np.log10(np.maximum(4 * magnitude.T**2, FLOOR))
    return levels


def agrees(ours: Samples, reference: Samples) -> bool:
    """Print the error in decibels where there is any sound; return whether it is within the tolerance."""
    heard = reference > -80
    worst = np.abs(ours - reference)[heard].max(initial=0)
    quiet = ours[~heard].max(initial=-100)
    good = bool(ours.shape == reference.shape and worst <= TOLERANCE and quiet < -79)
    print(f"  against SciPy: {worst:.1e} dB, allowed {TOLERANCE:.0e}: {'ok' if good else 'FAILED'}")
    return good


def draw(samples: Samples, rate: int, levels: Samples, path: Path) -> None:
    """Draw the recording and its spectrogram."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5), layout="constrained")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(1, 3))
    top.plot(np.arange(len(samples)) / rate, samples, linewidth=0.4, color="#24527a")
    top.set_ylabel("amplitude")
    frequencies = vd.fft.rfftfreq(LENGTH, 1 / rate) / 1000
    times = (np.arange(len(levels)) * HOP + LENGTH / 2) / rate
    image = bottom.pcolormesh(times, frequencies, levels.T, vmin=-90, vmax=-20, cmap="magma", rasterized=True)
    bottom.set(ylim=(0, 12), xlabel="time (s)", ylabel="frequency (kHz)")
    figure.colorbar(image, ax=bottom, label="dB")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def make_figure(path: Path, recording: Path | None = None) -> bool:
    """Compute, compare and draw; return whether the device and SciPy agree."""
    recording = recording or find_recording()
    samples, rate = read_wav(recording)
    window = signal.windows.hann(LENGTH, sym=False).astype(np.float32)
    print(f"{recording}: {len(samples)} samples at {rate} Hz.")
    levels = spectrogram(samples, window, HOP)
    correct = agrees(levels, scipy_spectrogram(samples, window, HOP))
    draw(samples, rate, levels, path)
    return correct


def main(output: Path = OUTPUT, recording: Path | None = None) -> int:
    """Run everything; return the exit status."""
    correct = make_figure(output, recording)
    print(f"Spectrogram: {output}")
    return 0 if correct else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recording", type=Path, nargs="?", help="a WAV file")
    parser.add_argument("--output", type=Path, default=OUTPUT, help="the picture to write")
    arguments = parser.parse_args()
    sys.exit(main(arguments.output, arguments.recording))
