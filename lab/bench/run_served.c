/* SPDX-License-Identifier: Apache-2.0 */
/* Works of other people's programs, which this one starts and drives: where it
 * runs on far memory, so do they. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/rng.h"
#include "place.h"
#include "run_bench.h"

enum {
	VALUE_MAX = 8192,
	ITEM_BYTES = 450, /* of an item, with everything, on average */
	GETS_PER_SET = 30,
	ROW_BYTES = 460, /* of a row of stock */
};

/* ---- memcached ---------------------------------------------------------- */

/* As fitted to the pool ETC by Atikoglu and others (2012): a generalized Pareto
 * distribution. */
static unsigned value_bytes(uint64_t key)
{
	struct rng r;
	double u;

	rng_init(&r, key);
	u = (double)(rng_u64(&r) >> 11) / 9007199254740992.0;
	u = 214.476 / 0.348238 * (pow(1 - u, -0.348238) - 1);
	return u < 16 ? 16 : u > VALUE_MAX ? VALUE_MAX : (unsigned)u;
}

static pid_t start_memcached(const char *path, uint64_t mib)
{
	char size[24];
	char *argv[] = {"memcached",
			"-u",
			"root",
			"-t",
			"1",
			"-s",
			(char *)(uintptr_t)path,
			"-m",
			size,
			NULL};

	(void)snprintf(size, sizeof(size), "%" PRIu64, mib);
	return place_start(0, argv[0], argv);
}

static bool set(FILE *to, uint64_t key, uint8_t *value)
{
	unsigned n = value_bytes(key);

	memcpy(value, &key, sizeof(key));
	return fprintf(to, "set etc-pool-%020" PRIu64 " 0 0 %u noreply\r\n",
		       key, n) > 0 &&
	       fwrite(value, 1, n, to) == n && fputs("\r\n", to) >= 0;
}

/* What it has, must be right; that it dropped something is no fault. */
static bool get(FILE *to, FILE *from, uint64_t key, uint8_t *value)
{
	char line[128];
	unsigned n = 0;

	if (fprintf(to, "get etc-pool-%020" PRIu64 "\r\n", key) < 0 ||
	    fflush(to) != 0 || !fgets(line, sizeof(line), from))
		return false;
	if (strcmp(line, "END\r\n") == 0)
		return true;
	return sscanf(line, "VALUE %*s %*u %u", &n) == 1 && n <= VALUE_MAX &&
	       fread(value, 1, n + 2, from) == n + 2 &&
	       memcmp(value, &key, sizeof(key)) == 0 &&
	       fgets(line, sizeof(line), from) && line[0] == 'E';
}

/* Some keys are far more wanted than others. */
static uint64_t pick(struct rng *r, uint64_t keys)
{
	uint64_t v = rng_below(r, keys);

	return v * v / keys * v / keys;
}

static uint64_t ask_memcached(int fd, const struct run_work *w)
{
	uint64_t keys = w->bytes / ITEM_BYTES, ns;
	uint8_t *value = calloc(1, VALUE_MAX + 2);
	FILE *to = fdopen(dup(fd), "w"), *from = fdopen(fd, "r");
	bool ok = to && from && value;
	struct rng r;

	rng_init(&r, w->seed);
	for (uint64_t k = 0; ok && k < keys; k++)
		ok = set(to, k, value);
	ok = ok && get(to, from, 0, value);
	ns = bench_now_ns();
	for (uint64_t i = 0; ok && i < w->count; i++)
		ok = i % (GETS_PER_SET + 1) == 0
			     ? set(to, pick(&r, keys), value)
			     : get(to, from, pick(&r, keys), value);
	ns = bench_now_ns() - ns;
	if (to)
		(void)fclose(to);
	if (from)
		(void)fclose(from);
	free(value);
	return ok ? ns : 0;
}

uint64_t run_etc(const struct run_work *w)
{
	char path[] = "/tmp/aquifer-etc-XXXXXX";
	uint64_t ns = 0;
	int fd = mkstemp(path);
	pid_t pid;

	if (fd < 0)
		return 0;
	(void)close(fd);
	(void)unlink(path);
	pid = start_memcached(path, (w->bytes >> 20) + 64);
	if (place_dial(path, &pid, &fd) == 0)
		ns = ask_memcached(fd, w);
	place_end(pid);
	(void)unlink(path);
	return ns;
}

/* ---- sqlite3 ------------------------------------------------------------ */

static void write_orders(FILE *f, const struct run_work *w)
{
	uint64_t rows = w->bytes / ROW_BYTES;
	struct rng r;

	rng_init(&r, w->seed);
	fprintf(f,
		"CREATE TABLE stock(i INTEGER PRIMARY KEY, n INTEGER, t TEXT);"
		"CREATE TABLE orders(o INTEGER PRIMARY KEY, i INTEGER, c "
		"INTEGER, t TEXT);CREATE INDEX by_c ON orders(c);\n"
		"WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM k "
		"WHERE i < %" PRIu64 ") INSERT INTO stock SELECT i, 100, "
		"hex(randomblob(200)) FROM k;\n",
		rows);
	for (uint64_t i = 0; i < w->count; i++) {
		uint64_t row = 1 + rng_below(&r, rows);
		uint64_t customer = rng_below(&r, 1000);

		fprintf(f,
			"BEGIN;UPDATE stock SET n = n - 1 WHERE i = %" PRIu64
			";INSERT INTO orders(i, c, t) SELECT i, %" PRIu64
			", t FROM stock WHERE i = %" PRIu64 ";COMMIT;\n",
			row, customer, row);
		if (i % 4 == 0)
			fprintf(f,
				"SELECT max(0, count(*) - 1e9) FROM orders "
				"JOIN stock USING(i) WHERE c = %" PRIu64 ";\n",
				customer);
	}
	fprintf(f, "SELECT 'left', 100 * count(*) - sum(n) FROM stock;"
		   "SELECT 'orders', count(*) FROM orders;\n");
}

static pid_t start_sqlite(int in, int out)
{
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	(void)dup2(in, STDIN_FILENO);
	(void)dup2(out, STDOUT_FILENO);
	(void)execlp("sqlite3", "sqlite3", "-batch", ":memory:", (char *)NULL);
	_exit(127);
}

/* Its last two lines say how many orders there were. */
static bool orders_are(FILE *f, uint64_t count)
{
	char line[128], left[64], orders[64];
	unsigned found = 0;

	(void)snprintf(left, sizeof(left), "left|%" PRIu64 "\n", count);
	(void)snprintf(orders, sizeof(orders), "orders|%" PRIu64 "\n", count);
	rewind(f);
	while (fgets(line, sizeof(line), f))
		found += strcmp(line, left) == 0 || strcmp(line, orders) == 0;
	return found == 2;
}

uint64_t run_oltp(const struct run_work *w)
{
	FILE *in = tmpfile(), *out = tmpfile();
	uint64_t ns = 0;
	int status = 1;
	pid_t pid = -1;

	if (in && out) {
		write_orders(in, w);
		(void)fflush(in);
		(void)lseek(fileno(in), 0, SEEK_SET);
		ns = bench_now_ns();
		pid = start_sqlite(fileno(in), fileno(out));
	}
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	ns = bench_now_ns() - ns;
	if (status != 0 || !orders_are(out, w->count))
		ns = 0;
	if (in)
		(void)fclose(in);
	if (out)
		(void)fclose(out);
	return ns;
}
