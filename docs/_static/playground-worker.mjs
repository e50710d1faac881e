// Runs vkdispatch under Pyodide, off the page's thread: takes the text of a kernel, and answers with its GLSL.

const CDN = "https://cdn.jsdelivr.net/pyodide/v314.0.7/full/";

const RUN = `
import linecache
import traceback


def translate(source):
    """Return the GLSL of every kernel that a program defines, or the error that it raises."""
    import vkdispatch as vd

    name = "kernel.py"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    variables = {"__name__": "kernel"}
    try:
        exec(compile(source, name, "exec", dont_inherit=True), variables)
        kernels = [value for value in variables.values() if isinstance(value, vd.ShaderFunction)]
        if not kernels:
            return False, "The program defines no kernel: decorate a function with @vd.shader."
        return True, "\\n\\n".join(str(kernel.get_src(build=False)).strip() for kernel in kernels)
    except SyntaxError as error:
        return False, "".join(traceback.format_exception_only(error)).strip()
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"
`;

async function load() {
  // a copy of Pyodide beside the page, if there is one
  const beside = new URL("pyodide/", self.location).href;
  const found = await fetch(beside + "pyodide.mjs", { method: "HEAD" }).then((answer) => answer.ok, () => false);
  const place = found ? beside : CDN;
  const { loadPyodide } = await import(place + "pyodide.mjs");
  const python = await loadPyodide({ indexURL: place });
  const sources = await fetch(new URL("vkdispatch.zip", self.location));
  python.unpackArchive(new Uint8Array(await sources.arrayBuffer()), "zip");
  python.runPython(RUN);
  return python.globals.get("translate");
}

const ready = load();
ready.then(
  () => self.postMessage({ state: "ready" }),
  (error) => self.postMessage({ state: "failed", text: String(error) }),
);

self.onmessage = async ({ data }) => {
  const translate = await ready;
  const answer = translate(data.source);
  const [correct, text] = answer.toJs();
  answer.destroy();
  self.postMessage({ state: "done", number: data.number, correct, text });
};
