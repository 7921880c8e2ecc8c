/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small MPI program: a ring, a sum over all, and one-sided puts, with every
 * byte compared. It is compiled by mpicc in net_mpi.sh and knows nothing of
 * the NIC.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	WORDS_MAX = 1 << 18, /* 1 MiB */
	ROUNDS = 20,
};

static uint32_t word(uint32_t from, uint32_t round, uint32_t i)
{
	return (from + 1) * 2654435761u ^ round * 40503u ^ i * 2246822519u;
}

static void need(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "net_mpi: %s\n", what);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

/* Each sends to the next and receives from the one before. */
static void ring(uint32_t rank, uint32_t size, uint32_t *out, uint32_t *in)
{
	uint32_t next = (rank + 1) % size, prev = (rank + size - 1) % size;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		int n = (int)((uint32_t)WORDS_MAX >> round % 19);

		for (int i = 0; i < n; i++)
			out[i] = word(rank, round, (uint32_t)i);
		MPI_Sendrecv(out, n, MPI_UINT32_T, (int)next, 7, in, n,
			     MPI_UINT32_T, (int)prev, 7, MPI_COMM_WORLD,
			     MPI_STATUS_IGNORE);
		for (int i = 0; i < n; i++)
			need(in[i] == word(prev, round, (uint32_t)i), "ring");
	}
}

static void sum(uint32_t rank, uint32_t size, uint32_t *out, uint32_t *in)
{
	for (uint32_t round = 0; round < ROUNDS; round++) {
		int n = (int)((uint32_t)WORDS_MAX >> round % 19);

		for (int i = 0; i < n; i++)
			out[i] = word(rank, round, (uint32_t)i);
		MPI_Allreduce(out, in, n, MPI_UINT32_T, MPI_SUM,
			      MPI_COMM_WORLD);
		for (int i = 0; i < n; i++) {
			uint32_t all = 0;

			for (uint32_t r = 0; r < size; r++)
				all += word(r, round, (uint32_t)i);
			need(in[i] == all, "allreduce");
		}
	}
}

/* One-sided: everybody writes into the next one's window and adds to 0's. */
static void windows(uint32_t rank, uint32_t size)
{
	uint32_t next = (rank + 1) % size, prev = (rank + size - 1) % size;
	uint64_t one = 1, *mem;
	MPI_Win win;

	MPI_Win_allocate(4096 * sizeof(*mem), sizeof(*mem), MPI_INFO_NULL,
			 MPI_COMM_WORLD, &mem, &win);
	for (int i = 0; i < 4096; i++)
		mem[i] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	MPI_Win_lock_all(0, win);
	for (uint32_t i = 1; i < 64; i++) {
		uint64_t v = word(rank, i, i);

		MPI_Put(&v, 1, MPI_UINT64_T, (int)next, (MPI_Aint)i, 1,
			MPI_UINT64_T, win);
		MPI_Win_flush(next, win);
		MPI_Accumulate(&one, 1, MPI_UINT64_T, 0, 0, 1, MPI_UINT64_T,
			       MPI_SUM, win);
	}
	MPI_Win_unlock_all(win);
	MPI_Barrier(MPI_COMM_WORLD);
	for (uint32_t i = 1; i < 64; i++)
		need(mem[i] == word(prev, i, i), "put");
	need(rank != 0 || mem[0] == 63 * size, "accumulate");
	MPI_Win_free(&win);
}

int main(int argc, char **argv)
{
	uint32_t *out = malloc(WORDS_MAX * sizeof(*out));
	uint32_t *in = malloc(WORDS_MAX * sizeof(*in));
	int rank, size;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	need(out && in, "memory");
	ring((uint32_t)rank, (uint32_t)size, out, in);
	sum((uint32_t)rank, (uint32_t)size, out, in);
	windows((uint32_t)rank, (uint32_t)size);
	if (rank == 0)
		printf("net_mpi: %d processes, data as expected\n", size);
	MPI_Finalize();
	free(out);
	free(in);
	return 0;
}
