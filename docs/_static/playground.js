// The page of the playground: sends what is typed to the worker, and shows the answer to the last text.

const EXAMPLES = {
  "Scale": `import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *


@vd.shader("data.size")
def scale(data: Buff[f32], alpha: Const[f32]) -> None:
    i = vc.global_invocation_id().x
    data[i] = data[i] * alpha
`,
  "Collatz: a loop of the GPU": `import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *


@vd.shader("steps.size")
def collatz(steps: Buff[i32], limit: Const[i32]) -> None:
    n = vc.global_invocation_id().x + 1
    count = 0
    while n != 1 and count < limit:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        count += 1
    steps[vc.global_invocation_id().x] = count
`,
  "Polynomial: Python at work while tracing": `import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *


def polynomial(coefficients):
    @vd.shader("x.size")
    def evaluate(x: Buff[f32]) -> None:
        i = vc.global_invocation_id().x
        value = coefficients[0]
        for coefficient in coefficients[1:]:
            value = value * x[i] + coefficient
        x[i] = value

    return evaluate


kernel = polynomial([1.0, 0.5, -4.0])
`,
  "Shared memory": `import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *


@vd.shader("x.size", local_size=64)
def reverse_blocks(x: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    own = vc.local_invocation_id().x
    tile = vc.shared_buffer(f32, 64, "tile")
    tile[own] = x[i]
    vc.barrier()
    x[i] = tile[63 - own]
`,
  "A mistake": `import vkdispatch as vd
import vkdispatch.codegen as vc
from vkdispatch.codegen.abbreviations import *


@vd.shader("histogram.size")
def count(histogram: Buff[i32], weight: Buff[f32]) -> None:
    i = vc.global_invocation_id().x
    histogram[i] = weight[i]
`,
};

window.addEventListener("DOMContentLoaded", () => {
  const [source, glsl, state, choice] = ["source", "glsl", "state", "choice"].map((name) =>
    document.getElementById(`playground-${name}`),
  );
  const here = document.currentScript?.src ?? document.querySelector('script[src*="playground.js"]').src;
  const worker = new Worker(new URL("playground-worker.mjs", here), { type: "module" });
  let last = 0;
  let waiting;

  function send() {
    last += 1;
    worker.postMessage({ number: last, source: source.value });
  }

  worker.onmessage = ({ data }) => {
    if (data.state === "ready") {
      state.textContent = "Importing vkdispatch...";
    } else if (data.state === "failed") {
      state.textContent = `Python could not be loaded: ${data.text}`;
    } else if (data.number === last) {
      state.textContent = "";
      glsl.textContent = data.text;
      glsl.className = data.correct ? "" : "playground-error";
    }
  };
  for (const name of Object.keys(EXAMPLES)) {
    choice.add(new Option(name));
  }
  choice.addEventListener("change", () => {
    source.value = EXAMPLES[choice.value];
    send();
  });
  source.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(send, 300);
  });
  source.addEventListener("keydown", (event) => {
    if (event.key === "Tab") {
      event.preventDefault();
      source.setRangeText("    ", source.selectionStart, source.selectionEnd, "end");
    }
  });
  source.value = EXAMPLES[choice.value];
  send();
});
