"""Orders for several tests, each in all compiled models."""

from __future__ import annotations

HOST = (
    "cpp",
    "fortran",
    "openmp_cpp",
    "openmp_fortran",
    "openacc_cpp",
    "openacc_fortran",
    "omptarget_cpp",
    "omptarget_fortran",
)
NATIVE = (*HOST, "cuda", "hip")

ADD = """
set_argnames(("x", "y"), "z")

[cuda, hip]
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id < x.size) z(id) = x(id) + y(id);

[cpp]
    for (int id = 0; id < x.size; id++) z(id) = x(id) + y(id);

[openmp_cpp]
    #pragma omp for
    for (int id = 0; id < x.shape[0]; id++) z(id) = x(id) + y(id);

[openacc_cpp]
    #pragma acc loop gang worker vector
    for (int id = 0; id < x.shape[0]; id++) z(id) = x(id) + y(id);

[omptarget_cpp]
    #pragma omp teams distribute parallel for
    for (int id = 0; id < x.shape[0]; id++) z(id) = x(id) + y(id);

[fortran]
    z = x + y

[openmp_fortran]
    INTEGER id
    !$omp do
    DO id = LBOUND(x, 1), UBOUND(x, 1)
        z(id) = x(id) + y(id)
    END DO
    !$omp end do

[openacc_fortran]
    INTEGER id
    !$acc loop gang worker vector
    DO id = 1, x_attr%shape(1)
        z(id) = x(id) + y(id)
    END DO

[omptarget_fortran]
    INTEGER id
    !$omp teams distribute parallel do
    DO id = 1, x_attr%size
        z(id) = x(id) + y(id)
    END DO
"""

_LOOPS = """
    for (int i = 0; i < x.shape[0]; i++)
        for (int j = 0; j < x.shape[1]; j++)
            for (int k = 0; k < x.shape[2]; k++)
                z(i, j, k) = x(i, j, k) + alpha * y(i, j, k);
"""
_DO_LOOPS = """
    DO k = 1, x_attr%shape(3)
        DO j = 1, x_attr%shape(2)
            DO i = 1, x_attr%shape(1)
                z(i, j, k) = x(i, j, k) + alpha * y(i, j, k)
            END DO
        END DO
    END DO
"""

ADD_3D = f"""
set_argnames(("x", "y", "alpha"), "z")
[cuda, hip]
    int i = blockIdx.x, j = blockIdx.y, k = threadIdx.x;
    if (k < x.shape[2]) z(i, j, k) = x(i, j, k) + alpha * y(i, j, k);
[cpp]{_LOOPS}
[openmp_cpp]
    #pragma omp for{_LOOPS}
[openacc_cpp]
    #pragma acc loop gang worker vector{_LOOPS}
[omptarget_cpp]
    #pragma omp distribute parallel for collapse(3){_LOOPS}
[fortran]
    integer i, j, k{_DO_LOOPS}
[openmp_fortran]
    implicit none
    integer i, j, k
    !$omp do{_DO_LOOPS}
[openacc_fortran]
    integer i, j, k
    !$acc loop gang worker vector collapse(3){_DO_LOOPS}
[omptarget_fortran]
    integer i, j, k
    !$omp distribute parallel do collapse(3){_DO_LOOPS}
"""

_PRODUCT = """
    for (int i = 0; i < a.shape[0]; i++)
        for (int j = 0; j < b.shape[1]; j++) {
            c(i, j) = 0;
            for (int k = 0; k < a.shape[1]; k++) c(i, j) += a(i, k) * b(k, j);
        }
"""
_DO_PRODUCT = """
    do j = 1, b_attr%shape(2)
        do i = 1, a_attr%shape(1)
            c(i, j) = 0
            do k = 1, a_attr%shape(2)
                c(i, j) = c(i, j) + a(i, k) * b(k, j)
            end do
        end do
    end do
"""

PRODUCT = f"""
set_argnames(("a", "b"), "c")
[cuda, hip]
    int i = blockIdx.x, j = threadIdx.x;
    if (j < b.shape[1]) {{
        c(i, j) = 0;
        for (int k = 0; k < a.shape[1]; k++) c(i, j) += a(i, k) * b(k, j);
    }}
[cpp]{_PRODUCT}
[openmp_cpp]
    // regions of its own
    #pragma omp parallel for{_PRODUCT}
[openacc_cpp]
    #pragma acc parallel loop{_PRODUCT}
[omptarget_cpp]
    #pragma omp target teams distribute parallel for{_PRODUCT}
[fortran]
    c = matmul(a, b)
[openmp_fortran]
    integer i, j, k
    !$omp parallel do private(i, k){_DO_PRODUCT}
[openacc_fortran]
    integer i, j, k
    !$acc parallel loop private(i, k){_DO_PRODUCT}
[omptarget_fortran]
    integer i, j, k
    !$omp target teams distribute parallel do private(i, k){_DO_PRODUCT}
"""
