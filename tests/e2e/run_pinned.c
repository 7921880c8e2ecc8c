/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that the kernel lends to devices, while other threads want its place:
 *
 *   run_pinned PLAY FILE SEED
 *
 * reads a file into far memory by O_DIRECT (pread, Linux AIO, io_uring with and
 * without registered buffers), or writes one from there. Every word is checked.
 * FILE is made by the play "make". Exit code 77: the file system has no
 * O_DIRECT.
 */
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include "run_press.h"

enum {
	FILE_PAGES = 2048,
	SLOTS = 16,	 /* transfers under way at a time, of one thread */
	SLOT_PAGES = 16, /* of each: one MiB together */
	READERS = 3,
	ROUNDS = 24, /* of SLOTS transfers each */
};

static const char *file;

/* ---- reading ------------------------------------------------------------ */

struct transfer {
	uint64_t *mem;
	uint64_t page; /* of the file */
	unsigned pages;
};

struct reader {
	int fd;
	uint64_t random;
	uint64_t *mem;
	struct transfer t[SLOTS];
	/* Starts all of t and returns when they have ended. */
	void (*read)(struct reader *r);
	struct io_uring_sqe *sqe;
	_Atomic unsigned *sq_tail, *cq_head, *cq_tail;
	unsigned *sq_array, sq_mask, cq_mask;
	struct io_uring_cqe *cqe;
	bool is_fixed;
	int ring;
	aio_context_t aio;
};

static uint64_t next_random(struct reader *r)
{
	r->random += 0x9e3779b97f4a7c15ull;
	return mix(r->random);
}

/* The places are filled before, so that what does not arrive is seen; each is
 * looked at once when it has arrived, and again after others had its place. */
static void *reader_main(void *arg)
{
	struct reader *r = arg;

	for (unsigned round = 0; round < ROUNDS; round++) {
		for (unsigned i = 0; i < SLOTS; i++) {
			struct transfer *t = &r->t[i];

			t->mem = r->mem + (uint64_t)i * SLOT_PAGES * WORDS;
			t->pages = 1 + next_random(r) % SLOT_PAGES;
			t->page = next_random(r) % (FILE_PAGES - t->pages);
			t->mem[0] = round;
		}
		r->read(r);
		for (unsigned k = 0; k < 2 * SLOTS; k++)
			for (unsigned i = 0; i < r->t[k % SLOTS].pages; i++)
				check_page(r->t[k % SLOTS].mem + i * WORDS,
					   r->t[k % SLOTS].page + i);
	}
	return NULL;
}

static void read_plain(struct reader *r)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		struct transfer *t = &r->t[i];

		CHECK(pread(r->fd, t->mem, t->pages * (size_t)PAGE,
			    (off_t)(t->page * PAGE)) == t->pages * PAGE);
	}
}

static void read_aio(struct reader *r)
{
	struct iocb cb[SLOTS], *list[SLOTS];
	struct io_event e[SLOTS];
	long got = 0;

	for (unsigned i = 0; i < SLOTS; i++) {
		cb[i] = (struct iocb){
			.aio_lio_opcode = IOCB_CMD_PREAD,
			.aio_fildes = (uint32_t)r->fd,
			.aio_buf = (uint64_t)(uintptr_t)r->t[i].mem,
			.aio_nbytes = r->t[i].pages * (uint64_t)PAGE,
			.aio_offset = (int64_t)(r->t[i].page * PAGE)};
		list[i] = &cb[i];
	}
	CHECK(syscall(SYS_io_submit, r->aio, SLOTS, list) == SLOTS);
	while (got < SLOTS) {
		long n = syscall(SYS_io_getevents, r->aio, 1, SLOTS, e, NULL);

		CHECK(n > 0);
		for (long i = 0; i < n; i++)
			CHECK(e[i].res > 0 && e[i].res % PAGE == 0);
		got += n;
	}
}

static void read_ring(struct reader *r)
{
	unsigned tail = atomic_load(r->sq_tail), got = 0;

	for (unsigned i = 0; i < SLOTS; i++, tail++) {
		r->sqe[tail & r->sq_mask] = (struct io_uring_sqe){
			.opcode = r->is_fixed ? IORING_OP_READ_FIXED
					      : IORING_OP_READ,
			.fd = r->fd,
			.addr = (uint64_t)(uintptr_t)r->t[i].mem,
			.len = r->t[i].pages * PAGE,
			.off = r->t[i].page * PAGE,
			.user_data = i};
		r->sq_array[tail & r->sq_mask] = tail & r->sq_mask;
	}
	atomic_store(r->sq_tail, tail);
	CHECK(syscall(SYS_io_uring_enter, r->ring, SLOTS, SLOTS,
		      IORING_ENTER_GETEVENTS, NULL, 0) == SLOTS);
	for (unsigned head = atomic_load(r->cq_head);
	     head != atomic_load(r->cq_tail); head++, got++) {
		struct io_uring_cqe c = r->cqe[head & r->cq_mask];

		CHECK(c.res == (int)r->t[c.user_data].pages * PAGE);
		atomic_store(r->cq_head, head + 1);
	}
	CHECK(got == SLOTS);
}

static void open_ring(struct reader *r)
{
	struct io_uring_params p = {0};
	struct iovec all = {r->mem, (size_t)SLOTS * SLOT_PAGES * PAGE};
	uint8_t *sq, *cq;

	r->ring = (int)syscall(SYS_io_uring_setup, SLOTS, &p);
	CHECK(r->ring >= 0);
	sq = mmap(NULL, p.sq_off.array + p.sq_entries * sizeof(unsigned),
		  PROT_READ | PROT_WRITE, MAP_SHARED, r->ring,
		  IORING_OFF_SQ_RING);
	cq = mmap(NULL,
		  p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe),
		  PROT_READ | PROT_WRITE, MAP_SHARED, r->ring,
		  IORING_OFF_CQ_RING);
	r->sqe = mmap(NULL, p.sq_entries * sizeof(*r->sqe),
		      PROT_READ | PROT_WRITE, MAP_SHARED, r->ring,
		      IORING_OFF_SQES);
	CHECK(sq != MAP_FAILED && cq != MAP_FAILED && r->sqe != MAP_FAILED);
	r->sq_tail = (void *)(sq + p.sq_off.tail);
	r->sq_array = (void *)(sq + p.sq_off.array);
	r->sq_mask = p.sq_entries - 1;
	r->cq_head = (void *)(cq + p.cq_off.head);
	r->cq_tail = (void *)(cq + p.cq_off.tail);
	r->cq_mask = p.cq_entries - 1;
	r->cqe = (void *)(cq + p.cq_off.cqes);
	if (r->is_fixed)
		CHECK(syscall(SYS_io_uring_register, r->ring,
			      IORING_REGISTER_BUFFERS, &all, 1) == 0);
}

static int open_file(bool is_direct)
{
	int fd = open(file, O_RDONLY | (is_direct ? O_DIRECT : 0));

	if (fd < 0 && errno == EINVAL)
		exit(77);
	CHECK(fd >= 0);
	return fd;
}

static void play_read(void (*how)(struct reader *), bool is_fixed,
		      bool is_direct)
{
	static struct reader reader[READERS];
	pthread_t thread[READERS];
	unsigned readers = how == read_plain ? READERS : 1;

	for (unsigned i = 0; i < readers; i++) {
		struct reader *r = &reader[i];

		*r = (struct reader){.fd = open_file(is_direct),
				     .random = i + seed,
				     .read = how,
				     .mem = map(SLOTS * SLOT_PAGES),
				     .is_fixed = is_fixed};
		if (how == read_ring)
			open_ring(r);
		if (how == read_aio)
			CHECK(syscall(SYS_io_setup, SLOTS, &r->aio) == 0);
		CHECK(pthread_create(&thread[i], NULL, reader_main, r) == 0);
	}
	for (unsigned i = 0; i < readers; i++)
		CHECK(pthread_join(thread[i], NULL) == 0);
}

/* ---- writing ------------------------------------------------------------ */

static void play_write(void)
{
	uint64_t *mem = map(SLOT_PAGES), *back = map(SLOT_PAGES);
	size_t bytes = (size_t)SLOT_PAGES * PAGE;
	int fd = open(file, O_RDWR | O_DIRECT);

	if (fd < 0 && errno == EINVAL)
		exit(77);
	CHECK(fd >= 0);
	for (unsigned round = 0; round < 4 * ROUNDS; round++) {
		off_t at = (off_t)(round % (FILE_PAGES / SLOT_PAGES)) *
			   (off_t)bytes;

		for (unsigned i = 0; i < SLOT_PAGES; i++)
			fill_page(mem + i * WORDS, round * SLOT_PAGES + i);
		CHECK(pwrite(fd, mem, bytes, at) == (ssize_t)bytes);
		CHECK(pread(fd, back, bytes, at) == (ssize_t)bytes);
		CHECK(memcmp(mem, back, bytes) == 0);
	}
}

/* What is in a pipe by reference stays as it was, as long as nobody writes. */
static void play_splice(void)
{
	uint64_t *mem = map(SLOT_PAGES), page[WORDS];
	int fd[2];

	CHECK(pipe(fd) == 0);
	for (unsigned round = 0; round < 8 * ROUNDS; round++) {
		struct iovec iov = {mem, (size_t)SLOT_PAGES * PAGE};

		for (unsigned i = 0; i < SLOT_PAGES; i++)
			fill_page(mem + i * WORDS, round * SLOT_PAGES + i);
		CHECK(vmsplice(fd[1], &iov, 1, 0) == SLOT_PAGES * PAGE);
		usleep(500);
		for (unsigned i = 0; i < SLOT_PAGES; i++) {
			CHECK(read(fd[0], page, PAGE) == PAGE);
			check_page(page, round * SLOT_PAGES + i);
			check_page(mem + i * WORDS, round * SLOT_PAGES + i);
		}
	}
}

static void make_file(void)
{
	uint64_t page[WORDS];
	int fd = open(file, O_CREAT | O_TRUNC | O_RDWR, 0600);

	CHECK(fd >= 0);
	for (unsigned i = 0; i < FILE_PAGES; i++) {
		fill_page(page, i);
		CHECK(write(fd, page, PAGE) == PAGE);
	}
	CHECK(fsync(fd) == 0);
	(void)close(fd);
}

/* Where the kernel does not say what is pinned, nothing is to be. */
static void play_refused(void)
{
	struct io_uring_params p = {0};
	int fd = open(file, O_RDONLY);

	CHECK(fd >= 0 && open(file, O_RDONLY | O_DIRECT) < 0);
	CHECK(errno == EINVAL);
	CHECK(fcntl(fd, F_SETFL, O_DIRECT) < 0 && errno == EINVAL);
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK(syscall(SYS_open, file, O_RDONLY | O_DIRECT) < 0);
	CHECK(errno == EINVAL);
	CHECK(syscall(SYS_io_uring_setup, 4, &p) < 0 && errno == ENOSYS);
	CHECK(syscall(SYS_openat2, AT_FDCWD, file, NULL, 0) < 0);
	CHECK(errno == ENOSYS);
	play_read(read_plain, false, false);
}

/* Seen by the preloaded library too: a file system that does not pin. */
static long fs_type;
__attribute__((visibility("default"))) int fstatfs(int fd, struct statfs *fs)
{
	int err = (int)syscall(SYS_fstatfs, fd, fs);

	if (fs_type)
		fs->f_type = fs_type;
	return err;
}

static void play_unpinned(void)
{
	int direct = O_RDONLY | O_DIRECT;
	int fd = open(file, direct);

	if (fd < 0 && errno == EINVAL)
		exit(77);
	CHECK(fd >= 0 && fcntl(fd, F_GETFL) & O_DIRECT);
	CHECK(fcntl(fd, F_SETFL, 0) == 0 && fcntl(fd, F_SETFL, O_DIRECT) == 0);
	CHECK(fcntl(fd, F_SETFL, 0) == 0);
	fs_type = 0x6969; /* NFS */
	CHECK(open(file, direct) < 0 && errno == EINVAL);
	CHECK(openat(AT_FDCWD, file, direct) < 0 && errno == EINVAL);
	CHECK(open(file, direct | O_CREAT, 0600) < 0 && errno == EINVAL);
	CHECK(fcntl(fd, F_SETFL, O_DIRECT) < 0 && errno == EINVAL);
	CHECK(fcntl(fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK(open(file, O_RDONLY) == fd + 1);
}

static void play(const char *name)
{
	if (!strcmp(name, "pread"))
		play_read(read_plain, false, true);
	else if (!strcmp(name, "aio"))
		play_read(read_aio, false, true);
	else if (!strcmp(name, "ring"))
		play_read(read_ring, false, true);
	else if (!strcmp(name, "registered"))
		play_read(read_ring, true, true);
	else if (!strcmp(name, "registered-buffered"))
		play_read(read_ring, true, false);
	else if (!strcmp(name, "write"))
		play_write();
	else if (!strcmp(name, "splice"))
		play_splice();
	else if (!strcmp(name, "unpinned"))
		play_unpinned();
	else if (!strcmp(name, "refused"))
		play_refused();
	else
		CHECK(!strcmp(name, "make"));
}

int main(int argc, char **argv)
{
	CHECK(argc == 4);
	file = argv[2];
	seed = strtoull(argv[3], NULL, 10);
	if (strcmp(argv[1], "make") != 0)
		return run_pressed(play, argv[1]);
	make_file();
	return 0;
}
