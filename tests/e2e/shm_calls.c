/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses POSIX and System V shared memory, named semaphores and
 * sleeping locks, and says what is not as POSIX has it. It knows nothing of
 * Aquifer but, with "alone", what is refused there. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
	PAGE = 4096
};

#define CHECK(that)                                                   \
	do {                                                          \
		errno = 0;                                            \
		if (!(that)) {                                        \
			fprintf(stderr, "line %d: not so: %s (%s)\n", \
				__LINE__, #that, strerror(errno));    \
			exit(1);                                      \
		}                                                     \
	} while (0)

static void *map(int fd, size_t len)
{
	return mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

static off_t length_of(int fd)
{
	struct stat st;

	CHECK(fstat(fd, &st) == 0);
	return st.st_size;
}

/* ---- POSIX --------------------------------------------------------------- */

static void names_and_lengths(void)
{
	int fd = shm_open("/calls", O_RDWR | O_CREAT | O_EXCL, 0600), file;
	char byte = 1;

	CHECK(fd >= 0);
	CHECK(shm_open("/calls", O_RDWR | O_CREAT | O_EXCL, 0600) < 0 &&
	      errno == EEXIST);
	CHECK(shm_open("/nowhere", O_RDWR, 0) < 0 && errno == ENOENT);
	CHECK(length_of(fd) == 0);
	CHECK(map(fd, PAGE) == MAP_FAILED);
	CHECK(ftruncate(fd, 5000) == 0 && length_of(fd) == 5000);
	CHECK(ftruncate(fd, 5000) == 0);
	CHECK(posix_fallocate(fd, 0, 3 * PAGE) == 0);
	CHECK(length_of(fd) == 3 * PAGE);
	CHECK(ftruncate(fd, PAGE) < 0 && length_of(fd) == 3 * PAGE);
	CHECK(fchmod(fd, 0400) == 0 && fchown(fd, geteuid(), -1) == 0);
	CHECK(fchown(fd, geteuid() + 1, -1) < 0 && errno == EPERM);
	/* Never past the cache. */
	CHECK(read(fd, &byte, 1) < 0 && errno == EBADF);
	CHECK(write(fd, &byte, 1) < 0 && errno == EBADF);
	CHECK(pread(fd, &byte, 1, 0) < 0 && errno == EBADF);
	file = open("/dev/shm/calls", O_RDWR);
	CHECK(file >= 0 && length_of(file) == 3 * PAGE);
	CHECK(close(file) == 0 && close(fd) == 0);
}

static void mappings(void)
{
	int fd = shm_open("/calls", O_RDWR, 0), other = dup(fd);
	char *a = map(fd, 3 * PAGE), *b = map(other, PAGE);

	CHECK(a != MAP_FAILED && b != MAP_FAILED && a != b);
	strcpy(a, "first");
	strcpy(a + 2 * PAGE, "third");
	CHECK(strcmp(b, "first") == 0);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED);
	CHECK(mremap(a, 3 * PAGE, 4 * PAGE, MREMAP_MAYMOVE) == MAP_FAILED);
	CHECK(msync(a, 3 * PAGE, MS_SYNC) == 0);
	CHECK(munmap(a, 2 * PAGE) == 0 && strcmp(a + 2 * PAGE, "third") == 0);
	strcpy(b, "again");
	CHECK(munmap(b, PAGE) == 0);
	/* Without a name it lives on. */
	CHECK(shm_unlink("/calls") == 0);
	CHECK(shm_unlink("/calls") < 0 && errno == ENOENT);
	CHECK(close(other) == 0);
	b = map(fd, 3 * PAGE);
	CHECK(b != MAP_FAILED && strcmp(b, "again") == 0);
	CHECK(strcmp(b + 2 * PAGE, "third") == 0);
	CHECK(close(fd) == 0 && strcmp(b, "again") == 0);
	CHECK(munmap(b, 3 * PAGE) == 0 && munmap(a + 2 * PAGE, PAGE) == 0);
}

/* More is mapped than the object has: SIGBUS behind its end, until somebody
 * makes it longer. Children touch it, because a page that was refused stays so
 * for its process. */
static void behind_the_end(void)
{
	int fd = shm_open("/end", O_RDWR | O_CREAT, 0600), status;
	char *a;

	CHECK(fd >= 0 && shm_unlink("/end") == 0 && ftruncate(fd, 100) == 0);
	a = map(fd, 3 * PAGE);
	CHECK(a != MAP_FAILED);
	a[PAGE - 1] = 1;
	for (int pages = 1; pages <= 3; pages++) {
		pid_t pid;

		CHECK(ftruncate(fd, (off_t)pages * PAGE) == 0);
		pid = fork();
		if (pid == 0) {
			for (int i = 0; i < pages; i++)
				a[i * PAGE]++;
			a[pages * PAGE % (3 * PAGE)]++;
			_exit(a[0] == 4);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK(pages == 3 ? WIFEXITED(status) && WEXITSTATUS(status)
				 : WIFSIGNALED(status) &&
					   WTERMSIG(status) == SIGBUS);
	}
	CHECK(a[0] == 4 && a[PAGE] == 2 && a[2 * PAGE] == 1);
	CHECK(munmap(a, 3 * PAGE) == 0 && close(fd) == 0);
}

static void children(void)
{
	int fd = shm_open("/child", O_RDWR | O_CREAT, 0600), status;
	volatile int *word;
	pid_t pid;

	CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
	word = map(fd, PAGE);
	CHECK(word != MAP_FAILED && shm_unlink("/child") == 0);
	*word = 5;
	pid = fork();
	if (pid == 0) {
		*word += *word == 5 ? 37 : 0;
		_exit(*word == 42 ? 0 : 1);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0 && *word == 42);
	CHECK(munmap((void *)(uintptr_t)word, PAGE) == 0 && close(fd) == 0);
}

/* In a child: every descriptor is closed, and something else is mapped over
 * parts of the object, by libc and past it. What is still mapped is the
 * object's. */
static int careless(char *a)
{
	char *over = mmap(a + PAGE, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	long past =
		syscall(SYS_mmap, a + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	int fd;

	if (over != a + PAGE || past != (long)(uintptr_t)(a + 3 * PAGE))
		return 1;
	if (close_range(0, ~0u, 0) != 0)
		return 2;
	if (*over || *(char *)past || a[0] != 1 || a[2 * PAGE] != 3)
		return 3;
	*over = *(char *)past = 99;
	a[0] = 11;
	a[2 * PAGE] = 13;
	/* It has none left, and gets new ones. */
	fd = shm_open("/careless", O_RDWR, 0);
	a = fd < 0 ? MAP_FAILED : map(fd, 4 * PAGE);
	if (a == MAP_FAILED || a[PAGE] != 2 || a[3 * PAGE] != 4)
		return 4;
	a[PAGE] = 12;
	return 0;
}

static void carelessness(void)
{
	int fd = shm_open("/careless", O_RDWR | O_CREAT, 0600), status;
	char *a;
	pid_t pid;

	CHECK(fd >= 0 && ftruncate(fd, 4 * PAGE) == 0);
	a = map(fd, 4 * PAGE);
	CHECK(a != MAP_FAILED);
	for (int i = 0; i < 4; i++)
		a[i * PAGE] = (char)(i + 1);
	pid = fork();
	if (pid == 0)
		_exit(careless(a));
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(a[0] == 11 && a[PAGE] == 12 && a[2 * PAGE] == 13);
	CHECK(a[3 * PAGE] == 4 && shm_unlink("/careless") == 0);
	CHECK(munmap(a, 4 * PAGE) == 0 && close(fd) == 0);
}

/* Sizes that cannot be. */
static void sizes(void)
{
	int fd = shm_open("/size", O_RDWR | O_CREAT, 0600);
	char *a;

	CHECK(fd >= 0 && ftruncate(fd, 1ll << 60) < 0 && length_of(fd) == 0);
	CHECK(ftruncate(fd, -1) < 0 && length_of(fd) == 0);
	CHECK(mmap(NULL, 0, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED);
	CHECK(ftruncate(fd, PAGE) == 0);
	CHECK(map(fd, 1ull << 60) == MAP_FAILED);
	CHECK(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 1ll << 60) ==
	      MAP_FAILED);
	CHECK(shmget(IPC_PRIVATE, 0, IPC_CREAT | 0600) < 0);
	CHECK(shmget(IPC_PRIVATE, 1ull << 60, IPC_CREAT | 0600) < 0);
	a = map(fd, PAGE);
	CHECK(a != MAP_FAILED && a[PAGE - 1] == 0 && munmap(a, PAGE) == 0);
	CHECK(close(fd) == 0 && shm_unlink("/size") == 0);
}

/* ---- System V ------------------------------------------------------------ */

static void system_v(void)
{
	int id = shmget(0x5eed, 100, IPC_CREAT | IPC_EXCL | 0600);
	int own = shmget(IPC_PRIVATE, PAGE, 0600);
	struct shmid_ds ds;
	char *a, *b;

	CHECK(id >= 0 && own >= 0 && own != id);
	CHECK(shmget(0x5eed, 100, IPC_CREAT | IPC_EXCL) < 0 && errno == EEXIST);
	CHECK(shmget(0x5eed, 50, 0) == id);
	CHECK(shmget(0x5eed, 500, 0) < 0 && errno == EINVAL);
	CHECK(shmget(0x5eee, 500, 0) < 0 && errno == ENOENT);
	a = shmat(id, NULL, 0);
	b = shmat(id, NULL, SHM_RDONLY);
	CHECK(a != (void *)-1 && b != (void *)-1);
	strcpy(a, "system v");
	CHECK(strcmp(b, "system v") == 0);
	CHECK(shmctl(id, IPC_STAT, &ds) == 0 && ds.shm_segsz == 100);
	CHECK(ds.shm_nattch == 2);
	CHECK(shmctl(id, IPC_RMID, NULL) == 0 && strcmp(a, "system v") == 0);
	CHECK(shmget(0x5eed, 50, 0) < 0 && errno == ENOENT);
	CHECK(shmdt(b) == 0 && shmdt(a) == 0);
	CHECK(shmdt(a) < 0 && errno == EINVAL);
	CHECK(shmctl(own, IPC_RMID, NULL) == 0);
}

/* ---- semaphores and locks ------------------------------------------------ */

static void nothing(int sig)
{
	(void)sig;
}

static void semaphores(void)
{
	sem_t *s = sem_open("/calls", O_CREAT | O_EXCL, 0600, 2), *t;
	struct sigaction alarmed = {.sa_handler = nothing};
	struct timespec soon;

	CHECK(s != SEM_FAILED);
	t = sem_open("/calls", 0);
	CHECK(t == s);
	CHECK(sem_wait(s) == 0 && sem_trywait(t) == 0);
	CHECK(sem_trywait(s) < 0 && errno == EAGAIN);
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_nsec += 20000000;
	soon.tv_sec += soon.tv_nsec / 1000000000;
	soon.tv_nsec %= 1000000000;
	CHECK(sem_timedwait(s, &soon) < 0 && errno == ETIMEDOUT);
	/* A signal ends a wait. */
	sigaction(SIGALRM, &alarmed, NULL);
	ualarm(20000, 20000);
	CHECK(sem_wait(s) < 0 && errno == EINTR);
	ualarm(0, 0);
	CHECK(sem_close(t) == 0 && sem_post(s) == 0 && sem_wait(s) == 0);
	CHECK(sem_close(s) == 0 && sem_unlink("/calls") == 0);
	CHECK(sem_open("/calls", 0) == SEM_FAILED && errno == ENOENT);
}

/* Of a child, which does not have it: what it is told by each call. */
static int as_stranger(pthread_mutex_t *m)
{
	struct timespec past = {0};

	return pthread_mutex_trylock(m) != EBUSY ||
	       pthread_mutex_timedlock(m, &past) != ETIMEDOUT ||
	       pthread_mutex_unlock(m) != EPERM;
}

static int status_of(int (*does)(pthread_mutex_t *), pthread_mutex_t *m)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(does(m));
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* Mutexes that know who has them; those that need the kernel are refused. */
static void mutexes_with_owners(void)
{
	int fd = shm_open("/mutex", O_RDWR | O_CREAT, 0600);
	struct timespec past = {0};
	pthread_mutexattr_t a;
	pthread_mutex_t *m;
	pthread_cond_t *c;

	CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
	m = map(fd, PAGE);
	c = (pthread_cond_t *)(m + 1);
	CHECK(m != (void *)MAP_FAILED && shm_unlink("/mutex") == 0);
	for (int i = 0; i < 5; i++) {
		pthread_mutexattr_init(&a);
		pthread_mutexattr_setpshared(&a, PTHREAD_PROCESS_SHARED);
		if (i == 1)
			pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST);
		if (i == 2)
			pthread_mutexattr_setprotocol(&a, PTHREAD_PRIO_INHERIT);
		if (i == 3)
			pthread_mutexattr_settype(&a, PTHREAD_MUTEX_RECURSIVE);
		if (i == 4)
			pthread_mutexattr_settype(&a, PTHREAD_MUTEX_ERRORCHECK);
		CHECK(pthread_mutex_init(m, &a) ==
		      (i == 1 || i == 2 ? ENOTSUP : 0));
		if (i < 3)
			continue;
		CHECK(pthread_mutex_unlock(m) == EPERM);
		CHECK(pthread_mutex_lock(m) == 0);
		CHECK(pthread_mutex_lock(m) == (i == 3 ? 0 : EDEADLK));
		CHECK(pthread_mutex_trylock(m) == (i == 3 ? 0 : EBUSY));
		CHECK(status_of(as_stranger, m) == 0);
		/* It is nobody's while its owner waits, and then as deep. */
		CHECK(pthread_cond_init(c, NULL) == 0);
		CHECK(pthread_cond_timedwait(c, m, &past) == ETIMEDOUT);
		CHECK(status_of(as_stranger, m) == 0);
		for (int depth = i == 3 ? 3 : 1; depth; depth--)
			CHECK(pthread_mutex_unlock(m) == 0);
		CHECK(pthread_mutex_unlock(m) == EPERM);
		CHECK(status_of(pthread_mutex_lock, m) == 0);
		CHECK(pthread_mutex_trylock(m) == EBUSY);
	}
}

/* ---- two machines -------------------------------------------------------- */

struct meeting {
	pthread_mutex_t lock;
	pthread_cond_t turned;
	pthread_barrier_t barrier;
	long turn, sum;
};

static struct meeting *meet(int side)
{
	sem_t *ready = sem_open("/ready", O_CREAT, 0600, 0);
	int fd = shm_open("/meeting", O_RDWR | O_CREAT, 0600);
	pthread_mutexattr_t lock;
	pthread_condattr_t cond;
	pthread_barrierattr_t barrier;
	struct meeting *m;

	CHECK(ready != SEM_FAILED && fd >= 0);
	CHECK(ftruncate(fd, sizeof(*m)) == 0);
	m = map(fd, 2 * PAGE); /* it gets the second one later */
	CHECK(m != MAP_FAILED && close(fd) == 0);
	if (side == 0) {
		pthread_mutexattr_init(&lock);
		pthread_mutexattr_setpshared(&lock, PTHREAD_PROCESS_SHARED);
		pthread_condattr_init(&cond);
		pthread_condattr_setpshared(&cond, PTHREAD_PROCESS_SHARED);
		pthread_barrierattr_init(&barrier);
		pthread_barrierattr_setpshared(&barrier,
					       PTHREAD_PROCESS_SHARED);
		CHECK(pthread_mutex_init(&m->lock, &lock) == 0);
		CHECK(pthread_cond_init(&m->turned, &cond) == 0);
		CHECK(pthread_barrier_init(&m->barrier, &barrier, 2) == 0);
		CHECK(sem_post(ready) == 0);
	} else {
		CHECK(sem_wait(ready) == 0); /* sleeps, until the other is */
	}
	return m;
}

/* One side makes the object longer, and both have mapped that already. */
static void grow_together(struct meeting *m, int side)
{
	volatile char *second = (char *)m + PAGE;
	int fd = shm_open("/meeting", O_RDWR, 0);

	CHECK(fd >= 0);
	if (side == 1) {
		CHECK(ftruncate(fd, 2 * PAGE) == 0);
		*second = 7;
	}
	CHECK(close(fd) == 0);
	pthread_barrier_wait(&m->barrier);
	CHECK(*second == 7);
	pthread_barrier_wait(&m->barrier);
}

static void together(int side, long count)
{
	struct meeting *m = meet(side);

	/* In turns: the other one sleeps. */
	for (long i = 0; i < count; i++) {
		pthread_mutex_lock(&m->lock);
		while (m->turn % 2 != side)
			pthread_cond_wait(&m->turned, &m->lock);
		m->turn++;
		pthread_cond_signal(&m->turned);
		pthread_mutex_unlock(&m->lock);
	}
	for (int i = 0; i < 5; i++)
		pthread_barrier_wait(&m->barrier);
	/* Both at once. */
	for (long i = 0; i < 100 * count; i++) {
		pthread_mutex_lock(&m->lock);
		m->sum++;
		pthread_mutex_unlock(&m->lock);
	}
	pthread_barrier_wait(&m->barrier);
	grow_together(m, side);
	printf("%ld %ld\n", m->turn, m->sum);
	if (side == 0) {
		CHECK(shm_unlink("/meeting") == 0);
		CHECK(sem_unlink("/ready") == 0);
	}
}

/* A deadline that lies in shared memory, half of it on another page, and none
 * of it on this machine: side 0 has written it on its own. */
static void far_deadline(int side)
{
	int fd = shm_open("/when", side ? O_RDWR : O_RDWR | O_CREAT, 0600);
	struct timespec *when;
	char *at;

	CHECK(fd >= 0);
	CHECK(side || ftruncate(fd, 4 * 4096) == 0);
	at = map(fd, 4 * 4096);
	when = (struct timespec *)(at + 2 * 4096 - sizeof(when->tv_sec));
	if (side == 0) {
		*when = (struct timespec){.tv_nsec = 200000000};
		return;
	}
	CHECK(syscall(SYS_futex, at, FUTEX_WAIT, 0, when, NULL, 0) < 0 &&
	      errno == ETIMEDOUT);
	when->tv_nsec = -1;
	CHECK(syscall(SYS_futex, at, FUTEX_WAIT, 0, when, NULL, 0) < 0 &&
	      errno == EINVAL);
	CHECK(shm_unlink("/when") == 0);
}

static void sleep_on(const char *name, bool wakes)
{
	sem_t *s = sem_open(name, O_CREAT, 0600, 0);

	CHECK(s != SEM_FAILED);
	if (wakes) {
		CHECK(sem_post(s) == 0);
		return;
	}
	printf("%d\n", (int)getpid());
	(void)fflush(stdout);
	CHECK(sem_wait(s) == 0);
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "deadline") == 0) {
		far_deadline(atoi(argv[2]));
		return 0;
	}
	if (argc == 3) {
		sleep_on(argv[2], strcmp(argv[1], "wake") == 0);
		return 0;
	}
	if (argc == 4 && strcmp(argv[1], "together") == 0) {
		together(atoi(argv[2]), atol(argv[3]));
		return 0;
	}
	names_and_lengths();
	mappings();
	behind_the_end();
	children();
	carelessness();
	sizes();
	system_v();
	semaphores();
	mutexes_with_owners();
	puts("all so");
	return 0;
}
