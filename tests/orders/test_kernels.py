"""The calls of accelpy 0.4 to 0.6: kernels, data first, libraries of any source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vkdispatch.orders as accelpy
from tests.orders.here import require
from vkdispatch.orders import Accel, AccelData, Kernel, OrderBuildError, OrderRunError, Spec

MODELS = ("cpp", "openmp_cpp", "openacc_cpp", "omptarget_cpp", "fortran", "openmp_fortran", "openacc_fortran")
TEXT = """
set_argnames("x", "y", "z")
attributes = {"x": {"dimension": "1:"}}

[cpp, omptarget_cpp: enable=is_enabled]
    for (int i = 0; i < SHAPE(x, 0); i++)
        for (int j = 0; j < SHAPE(x, 1); j++) {
            const TYPE(x) sum = x[i][j] + FACTOR * y[i][j];
            z[i][j] += sum;
        }

[openmp_cpp]
    #pragma omp parallel for
    for (int i = 0; i < SHAPE(x, 0); i++)
        for (int j = 0; j < SHAPE(x, 1); j++) z[i][j] += x[i][j] + FACTOR * y[i][j];

[openacc_cpp]
    int n = SHAPE(x, 0), m = SIZE(x) / n;
    #pragma acc parallel
    {
    #pragma acc loop gang
    for (int i = 0; i < n; i++)
        for (int j = 0; j < m; j++) z[i][j] += x[i][j] + FACTOR * y[i][j];
    }

[fortran, openmp_fortran: a, b, c, attrspec=attributes]
    INTEGER i, j
    DO j=LBOUND(a, 2), UBOUND(a, 2)
        DO i=LBOUND(a, 1), UBOUND(a, 1)
            c(i, j) = c(i, j) + a(i, j) + FACTOR * b(i, j)
        END DO
    END DO

[openacc_fortran: a, b, c]
    INTEGER i, j
    !$acc parallel num_gangs(SIZE(a, 1)), vector_length(SIZE(a, 2))
    !$acc loop gang
    DO i=1, SIZE(a, 1)
        DO j=1, SIZE(a, 2)
            c(i, j) = c(i, j) + a(i, j) + FACTOR * b(i, j)
        END DO
    END DO
    !$acc end parallel

[cuda: kernel="kernel"]
    accelpy_kernel<<<1, 1>>>(DVAR(x));

[kernel]
    __global__ void accelpy_kernel(ARG(x)) {}
"""
NAMES = {"is_enabled": True}


def arrays(order: Any = "C") -> tuple[Any, Any, Any]:
    block = np.random.default_rng(3).integers(0, 99, (3, 5, 7)).astype(np.float32)
    return tuple(np.array(part, order=order) for part in block)  # type: ignore[return-value]


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("model", MODELS)
def test_models(model: str, order: str) -> None:
    require(model)
    x, y, z = arrays(order)
    before = z.copy()
    kernel = Kernel(Spec(TEXT), accel=model, compile=None, debug=False)
    task = kernel.launch(x, y, z, environ=NAMES, macro={"FACTOR": 3, "UNUSED": None, "OTHER": True})
    task.wait()
    assert task.accel.model == model
    np.testing.assert_array_equal(z, before + x + 3 * y)
    kernel.launch(x, y, z, environ=NAMES, macro={"FACTOR": -3})
    kernel.stop()
    np.testing.assert_array_equal(z, before + 2 * x)


def test_names_numbers_and_read_only_arrays(tmp_path: Path) -> None:
    require("cpp")
    path = tmp_path / "scale.knl"
    path.write_text("[cpp: values, by, out]\n for (int i = 0; i < SIZE(out); i++) out[i] = by * values[i];\n")
    values = np.arange(5, dtype=np.int32)
    values.flags.writeable = False
    out = [0] * 5
    kernel = Kernel(str(path))
    kernel.launch(values, 3, out).wait()
    assert out == [0, 3, 6, 9, 12]
    with pytest.raises(ValueError, match=r"scale.knl:1: 4 arguments, and names for 3: values, by, out"):
        kernel.launch(values, 3, out, 1)
    same = np.arange(5)
    Kernel("[cpp: a, b]\n for (int i = 0; i < 5; i++) b[i] += a[i];\n").launch(same, same).wait()
    np.testing.assert_array_equal(same, 2 * np.arange(5))


def test_three_axes() -> None:
    require("cpp")
    x = np.arange(24.0).reshape(2, 3, 4)
    y = np.zeros((4, 3, 2))
    text = """
[cpp: x, y]
    for (int i = 0; i < 2; i++) for (int j = 0; j < 3; j++) for (int k = 0; k < 4; k++)
        y[k][j][i] = x[i][j][k];
"""
    Kernel(text).launch(x, y).wait()
    np.testing.assert_array_equal(y, x.T)


def test_sections_that_cannot_be_built() -> None:
    require("cpp")
    x, y, z = arrays()
    with pytest.raises(OrderBuildError, match=r"cuda \(section of line \d+\): kernels in cuda are not"):
        Kernel(TEXT, accel="cuda").launch(x, y, z, environ=NAMES)
    with pytest.raises(OrderBuildError, match="no section for cpp"):
        Kernel(TEXT, "cpp").launch(x, y, z, environ={"is_enabled": False}, macro={"FACTOR": 1})
    with pytest.raises(OrderBuildError, match=r"<order>:8.*FACTOR|FACTOR"):
        Kernel(TEXT, "cpp").launch(x, y, z, environ=NAMES)
    with pytest.raises(ValueError, match="is_enabled"):
        Kernel(Spec(TEXT)).launch(x, y, z)
    shifted = TEXT.replace('"1:"', '"0:"')
    with pytest.raises(ValueError, match=r"attrspec: the dimensions of x begin at 1, got '0:'"):
        Kernel(shifted).launch(x, y, z, environ=NAMES)
    with pytest.raises(ValueError, match="the option a has no value"):
        accelpy.Order("[cpp: a, b]\n")
    with pytest.raises(ValueError, match="neither a file nor an order"):
        Kernel("none.knl")
    task = Kernel("[cpp: x]\n throw 5;\n").launch(x)
    with pytest.raises(OrderRunError):
        task.wait()


@pytest.mark.parametrize(
    "options",
    [{}, {"accel": "openmp"}, {"lang": "cpp"}, {"accel": ["cpp", "fortran"]}, {"accel": "openmp_cpp"}],
)
def test_data_first(options: dict[str, Any]) -> None:
    require("openmp_cpp")
    x, y, z = arrays()
    before = z.copy()
    accel = Accel(copyin=(x, y), copyinout=[z], **options)
    accel.launch(Kernel(TEXT), x, y, z, environ=NAMES, macro={"FACTOR": 2})
    np.testing.assert_array_equal(z, before + x + 2 * y)
    accel.stop()
    with pytest.raises(TypeError, match="kernel: expected a Kernel, got str"):
        accel.launch(TEXT, x)
    with pytest.raises(ValueError, match="accel: rocket in cpp is no model"):
        Accel(accel="rocket", lang="cpp")


def test_data_of_kernels() -> None:
    require("cpp")
    x, y, z = arrays()
    before = z.copy()
    kernel = Kernel(Spec(TEXT), accel=["cpp"])
    data = AccelData(kernel, mapto=[x, y], maptofrom=[z], debug=0)
    kernel.launch(x, y, z, environ=NAMES, macro={"FACTOR": 1})
    data.stop()
    np.testing.assert_array_equal(z, before + x + y)


SOURCE = {
    "cpp": """extern "C" int add(double *x, double *y) {
    for (int i = 0; i < N; i++) y[i] += x[i];
    return 7;
}
""",
    "fortran": """integer(c_int) function add(x, y) bind(c, name="add")
use, intrinsic :: iso_c_binding
real(c_double), intent(in) :: x(N)
real(c_double), intent(inout) :: y(N)
y = y + x
add = 7
end function
""",
}


@pytest.mark.parametrize("lang", ["cpp", "fortran"])
@pytest.mark.parametrize("chosen", [{}, {"vendor": "gnu", "accel": ["cpp", "fortran"]}, {"vendor": "*"}])
def test_libraries(tmp_path: Path, lang: str, chosen: dict[str, Any]) -> None:
    require(lang)
    suffix = {"cpp": ".cpp", "fortran": ".F90"}[lang]
    (tmp_path / f"add{suffix}").write_text(SOURCE[lang])
    library = accelpy.build_sharedlib(
        f"add{suffix}", "add.so", str(tmp_path), opts="-DN=3", lang=lang, **chosen
    )
    assert library == str(tmp_path / "add.so")
    x, y = np.arange(3.0), np.ones(3)
    assert accelpy.invoke_sharedlib(lang, accelpy.load_sharedlib(library), "add", x, y) == 7
    np.testing.assert_array_equal(y, [1, 2, 3])


def test_errors_of_libraries(tmp_path: Path) -> None:
    require("cpp")
    build = accelpy.build_sharedlib
    with pytest.raises(ValueError, match="srcfile: there is no file"):
        build("none.cpp", "a.so", str(tmp_path))
    (tmp_path / "a.cpp").write_text("nonsense")
    with pytest.raises(OrderBuildError, match="nonsense"):
        build("a.cpp", "a.so", str(tmp_path), accel="cpp", lang="cpp")
    with pytest.raises(OrderBuildError, match="There is none here"):
        build("a.cpp", "a.so", str(tmp_path), vendor="cray", accel="cpp")
    (tmp_path / "a.cpp").write_text(SOURCE["cpp"])
    command = "g++ -shared -fPIC -o {outpath}"
    library = accelpy.load_sharedlib(build("a.cpp", "b.so", str(tmp_path), command, "-DN=2"))
    invoke = accelpy.invoke_sharedlib
    with pytest.raises(TypeError, match=r"args\[1\]: expected an array that is contiguous in order C"):
        invoke("cpp", library, "add", np.ones(2), np.ones((2, 2), order="F"))
    with pytest.raises(TypeError, match=r"args\[0\]: expected an array, got float"):
        invoke("cpp", library, "add", 1.0)
    with pytest.raises(ValueError, match="lang: expected"):
        invoke("pascal", library, "add")
