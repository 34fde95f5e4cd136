! SPDX-License-Identifier: GPL-3.0-or-later
! The same as mpi_job.c in Fortran, by both of its modules: what their bindings call must be probed.
module older
  use mpi
  implicit none
contains
  subroutine sum_of(n, values, result)
    integer, intent(in) :: n
    double precision, intent(in) :: values(n)
    double precision, intent(out) :: result(n)
    integer :: status
    call MPI_Allreduce(values, result, n, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, status)
  end subroutine sum_of
end module older

program job
  use mpi_f08
  use older, only: sum_of
  implicit none
  integer, parameter :: steps = 20, n = 500
  double precision :: values(n), result(n)
  type(MPI_Request) :: request(2)
  integer :: rank, ranks, step, to, from, pid

  call MPI_Init()
  call MPI_Comm_rank(MPI_COMM_WORLD, rank)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks)
  to = mod(rank + 1, ranks)
  from = mod(rank + ranks - 1, ranks)
  values = rank
  do step = 1, steps
    call MPI_Allreduce(values, result, n, MPI_DOUBLE_PRECISION, MPI_MAX, MPI_COMM_WORLD)
    call sum_of(n, values, result)
    call MPI_Bcast(values, n, MPI_DOUBLE_PRECISION, 0, MPI_COMM_WORLD)
    call MPI_Sendrecv(values, n, MPI_DOUBLE_PRECISION, to, 1, result, n, MPI_DOUBLE_PRECISION, from, 1, &
      MPI_COMM_WORLD, MPI_STATUS_IGNORE)
    call MPI_Irecv(result, n, MPI_DOUBLE_PRECISION, from, 2, MPI_COMM_WORLD, request(1))
    call MPI_Isend(values, n, MPI_DOUBLE_PRECISION, to, 2, MPI_COMM_WORLD, request(2))
    call MPI_Waitall(2, request, MPI_STATUSES_IGNORE)
    call MPI_Barrier(MPI_COMM_WORLD)
  end do
  call MPI_Finalize()
  pid = getpid()
  call report('MPI_Init', 1, 0)
  call report('MPI_Comm_rank', 1, 0)
  call report('MPI_Comm_size', 1, 0)
  call report('MPI_Allreduce', 2 * steps, 16 * n * steps)
  call report('MPI_Bcast', steps, 8 * n * steps)
  call report('MPI_Sendrecv', steps, 8 * n * steps)
  call report('MPI_Irecv', steps, 8 * n * steps)
  call report('MPI_Isend', steps, 8 * n * steps)
  call report('MPI_Waitall', steps, 0)
  call report('MPI_Barrier', steps, 0)
  call report('MPI_Finalize', 1, 0)
contains
  subroutine report(name, calls, bytes)
    character(*), intent(in) :: name
    integer, intent(in) :: calls, bytes
    print '(i0,1x,i0,1x,a,1x,i0,1x,i0)', pid, rank, name, calls, bytes
  end subroutine report
end program job
