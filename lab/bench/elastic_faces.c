/* SPDX-License-Identifier: Apache-2.0 */
/* A file of 64 MiB, written and read in parts of 1 MiB: by the library, by
 * write(2) and read(2) below `aquifer mount`, and by Python's fsspec. */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "elastic_bench.h"
#include "place.h"
#include "stats.h"
#include "ticks.h"

enum {
	PART = 1 << 20,
	PARTS = 64,
	PARTS_QUICK = 4,
	ROUNDS = 3,
	MOUNT_MS = 5000,
};

struct speed {
	double write_mb_s, read_mb_s;
};

struct face {
	struct elastic_bed *bed;
	char dir[64]; /* of this run; it is mounted there, too */
	pid_t mount;
	unsigned parts;
	uint8_t *data;
};

static double mb_s(const struct face *f, uint64_t start_ns)
{
	return (double)f->parts * PART * 1e3 /
	       (double)(bench_now_ns() - start_ns);
}

/* ---- the library --------------------------------------------------------- */

static int by_library(struct face *f, const char *name, struct speed *out)
{
	struct aq_elastic_options o = {.flags = AQ_ELASTIC_NEW};
	struct aq_file *file = NULL;
	uint64_t start = bench_now_ns();
	char path[64];
	size_t got;
	int err;

	(void)snprintf(path, sizeof(path), "/bench/%s", name);
	err = aq_file_open(f->bed->rack, path, &o, &file);
	for (unsigned i = 0; i < f->parts && !err; i++)
		err = aq_file_append(file, f->data, PART, NULL);
	out->write_mb_s = mb_s(f, start);
	start = bench_now_ns();
	for (unsigned i = 0; i < f->parts && !err; i++)
		err = aq_file_read(file, (uint64_t)i * PART, f->data, PART,
				   &got);
	out->read_mb_s = mb_s(f, start);
	aq_file_close(file);
	return err;
}

/* ---- a mount ------------------------------------------------------------- */

static int mount_it(struct face *f)
{
	struct stat before, now;
	char dir[80];

	(void)snprintf(dir, sizeof(dir), "%s/mnt", f->dir);
	if (mkdir(dir, 0700) || stat(dir, &before))
		return error_set(-errno, "%s: %s", dir, strerror(errno));
	f->mount = place_start_aquifer(PLACE_QUIET, "mount", "/bench", dir,
				       "--foreground", (char *)NULL);
	for (unsigned i = 0; f->mount > 0 && i < MOUNT_MS; i++) {
		if (stat(dir, &now) == 0 && now.st_dev != before.st_dev)
			return 0;
		(void)usleep(1000);
	}
	return error_set(-ENODEV, "aquifer mount does not work here; is there "
				  "a /dev/fuse?");
}

static int by_mount(struct face *f, const char *name, struct speed *out)
{
	uint64_t start;
	char path[128];
	int fd, err = f->mount > 0 ? 0 : mount_it(f);

	if (err)
		return err;
	(void)snprintf(path, sizeof(path), "%s/mnt/%s", f->dir, name);
	start = bench_now_ns();
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	for (unsigned i = 0; i < f->parts && !err; i++)
		if (write(fd, f->data, PART) != PART)
			err = error_set(-EIO, "%s: %s", path, strerror(errno));
	if (fd >= 0 && close(fd) && !err)
		err = error_set(-EIO, "%s: %s", path, strerror(errno));
	out->write_mb_s = mb_s(f, start);
	start = bench_now_ns();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	for (unsigned i = 0; i < f->parts && !err; i++)
		if (read(fd, f->data, PART) != PART)
			err = error_set(-EIO, "%s: %s", path, strerror(errno));
	out->read_mb_s = mb_s(f, start);
	if (fd >= 0)
		(void)close(fd);
	return err;
}

/* ---- fsspec -------------------------------------------------------------- */

/* Times itself, as the start of Python is not of interest. */
static const char script[] =
	"import sys, time\n"
	"import aquifer.fs\n"
	"path, out, parts = sys.argv[1], sys.argv[2], int(sys.argv[3])\n"
	"part = b'a' * (1 << 20)\n"
	"fs = aquifer.fs.AquiferFileSystem()\n"
	"t = [time.monotonic()]\n"
	"with fs.open(path, 'wb') as f:\n"
	"    for _ in range(parts): f.write(part)\n"
	"t.append(time.monotonic())\n"
	"with fs.open(path, 'rb') as f:\n"
	"    for _ in range(parts): assert len(f.read(1 << 20)) == 1 << 20\n"
	"t.append(time.monotonic())\n"
	"mb = parts * (1 << 20) / 1e6\n"
	"open(out, 'w').write(f'{mb / (t[1] - t[0])} {mb / (t[2] - t[1])}')\n";

static int by_fsspec(struct face *f, const char *name, struct speed *out)
{
	static const char *const pythons[] = {"python3", "/usr/bin/python3"};
	char path[64], result[80], parts[16], text[80] = "";
	int err = -ECHILD, fd;

	(void)snprintf(path, sizeof(path), "/bench/%s", name);
	(void)snprintf(result, sizeof(result), "%s/speed", f->dir);
	(void)snprintf(parts, sizeof(parts), "%u", f->parts);
	for (size_t i = 0; i < ARRAY_LEN(pythons) && err; i++) {
		const char *argv[] = {pythons[i], "-c",	 script, path,
				      result,	  parts, NULL};

		err = place_wait(place_start(PLACE_QUIET, pythons[i],
					     (char *const *)(uintptr_t)argv));
	}
	fd = err ? -1 : open(result, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) <= 0 ||
	    sscanf(text, "%lf %lf", &out->write_mb_s, &out->read_mb_s) != 2)
		err = error_set(-ENODEV, "python3 has no fsspec or no "
					 "aquifer.fs; see PYTHONPATH and "
					 "AQUIFER_LIB");
	if (fd >= 0)
		(void)close(fd);
	(void)unlink(result);
	return err;
}

/* ---- the table ----------------------------------------------------------- */

static const struct way {
	const char *name;
	const char *what;
	int (*run)(struct face *f, const char *name, struct speed *out);
} ways[] = {
	{"library", "aq_file_append and aq_file_read", by_library},
	{"mount", "write(2) and read(2) below aquifer mount", by_mount},
	{"fsspec", "write and read of Python's fsspec", by_fsspec},
};

static int measure(struct bench *b, struct face *f, const struct way *w)
{
	double write_mb_s[ROUNDS], read_mb_s[ROUNDS];
	unsigned rounds = (unsigned)u64_min(b->rounds, ROUNDS);
	struct speed s = {0};
	char name[32];
	int err = 0;

	for (unsigned i = 0; i < rounds && !err; i++) {
		(void)snprintf(name, sizeof(name), "%s%u", w->name,
			       f->bed->names++);
		err = w->run(f, name, &s);
		write_mb_s[i] = s.write_mb_s;
		read_mb_s[i] = s.read_mb_s;
	}
	if (err == -ENODEV) { /* it is not there on this machine */
		bench_row_failed(b, "faces", w->name, "MB/s", error_last());
		return 0;
	}
	if (err)
		return err;
	(void)json_object_set_new(
		bench_row(b, "faces", w->name, stats_median(write_mb_s, rounds),
			  "MB/s", w->what),
		"read_mb_s", json_real(stats_median(read_mb_s, rounds)));
	return 0;
}

int elastic_bench_faces(struct bench *b, struct elastic_bed *bed)
{
	struct face f = {.bed = bed, .parts = b->quick ? PARTS_QUICK : PARTS};
	int err = place_make(f.dir, "faces");

	f.data = malloc(PART);
	if (err || !f.data)
		err = error_set(-ENOMEM, "no folder or no memory");
	else
		memset(f.data, 'a', PART);
	for (size_t i = 0; i < ARRAY_LEN(ways) && !err; i++)
		err = measure(b, &f, &ways[i]);
	place_end(f.mount); /* which unmounts it */
	place_remove(f.dir);
	free(f.data);
	return err;
}
