/* SPDX-License-Identifier: Apache-2.0 */
/* A folder as vault. Names were checked by the caller. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "vault_priv.h"

enum {
	PATH_BYTES = VAULT_PLACE_MAX + VAULT_IMAGE_MAX + VAULT_OBJECT_MAX + 16,
	WRITE_BYTES = 8 << 20, /* of one call: a signal is heard in between */
};

static int fail(const char *what, const char *path)
{
	int err = -errno;

	return error_set(err, "%s %s: %s", what, path, strerror(-err));
}

/* ---- writing ------------------------------------------------------------- */

static int sync_folder(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int err = fd < 0 || fsync(fd) ? fail("cannot sync", path) : 0;

	if (fd >= 0)
		(void)close(fd); /* nothing was written through it */
	return err;
}

/* The folder of the image and the one above it; the place itself is not made:
 * where it is missing, something is not mounted. The names of both are on the
 * disk before anything in them counts. */
static int make_folders(const char *place, const char *image)
{
	char above[PATH_BYTES], path[PATH_BYTES];
	const char *slash = strchr(image, '/');
	int err;

	(void)snprintf(above, sizeof(above), "%s/%.*s", place,
		       (int)(slash - image), image);
	(void)snprintf(path, sizeof(path), "%s/%s", place, image);
	if (mkdir(above, 0700) && errno != EEXIST)
		return fail("cannot make", above);
	if (mkdir(path, 0700))
		return errno == EEXIST ? 0 : fail("cannot make", path);
	err = sync_folder(above);
	return err ? err : sync_folder(place);
}

static int write_all(int fd, const struct iovec *part, const char *path)
{
	size_t done = 0;

	while (done < part->iov_len) {
		size_t len = part->iov_len - done;
		ssize_t n = write(fd, (const char *)part->iov_base + done,
				  len < WRITE_BYTES ? len : WRITE_BYTES);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail("cannot write", path);
		done += (size_t)n;
	}
	return 0;
}

static int write_file(const char *path, const struct iovec *parts,
		      unsigned count)
{
	int fd = open(path,
		      O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		      0600);
	int err = fd < 0 ? fail("cannot make", path) : 0;

	for (unsigned i = 0; i < count && !err; i++)
		err = write_all(fd, &parts[i], path);
	if (!err && fsync(fd))
		err = fail("cannot sync", path);
	if (fd >= 0 && close(fd) && !err)
		err = fail("cannot write", path);
	return err;
}

int vault_dir_put(const char *place, const char *image, const char *object,
		  const struct iovec *parts, unsigned count)
{
	char path[PATH_BYTES], temp[PATH_BYTES + 8], folder[PATH_BYTES];
	int err = make_folders(place, image);

	if (err)
		return err;
	(void)snprintf(folder, sizeof(folder), "%s/%s", place, image);
	(void)snprintf(path, sizeof(path), "%s/%s/%s", place, image, object);
	(void)snprintf(temp, sizeof(temp), "%s.new", path);
	err = write_file(temp, parts, count);
	if (!err && rename(temp, path))
		err = fail("cannot rename", temp);
	if (err)
		(void)unlink(temp); /* perhaps it was never made */
	return err ? err : sync_folder(folder);
}

/* ---- reading ------------------------------------------------------------- */

static int read_file(int fd, const char *path, size_t max_bytes, void **out,
		     size_t *bytes)
{
	struct stat st;
	size_t done = 0, size;
	char *buf;

	if (fstat(fd, &st))
		return fail("cannot read", path);
	size = (size_t)st.st_size;
	if (size > max_bytes)
		return error_set(-EFBIG, "%s has %zu bytes, more than it may",
				 path, size);
	buf = malloc(size + 1);
	if (!buf)
		return error_set(-ENOMEM, "no memory for %s", path);
	while (done < size) {
		ssize_t n = read(fd, buf + done, size - done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			free(buf);
			return fail("cannot read", path);
		}
		if (n == 0)
			break; /* it has become shorter: its sum will say so */
		done += (size_t)n;
	}
	*out = buf;
	*bytes = done;
	return 0;
}

int vault_dir_get(const char *place, const char *image, const char *object,
		  size_t max_bytes, void **out, size_t *bytes)
{
	char path[PATH_BYTES];
	int fd, err;

	(void)snprintf(path, sizeof(path), "%s/%s/%s", place, image, object);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return fail("cannot read", path);
	err = read_file(fd, path, max_bytes, out, bytes);
	(void)close(fd); /* it was only read */
	return err;
}

/* ---- removing ------------------------------------------------------------ */

int vault_dir_remove(const char *place, const char *image, const char *object)
{
	char path[PATH_BYTES];

	(void)snprintf(path, sizeof(path), "%s/%s/%s", place, image, object);
	return unlink(path) && errno != ENOENT ? fail("cannot remove", path)
					       : 0;
}

int vault_dir_erase(const char *place, const char *image)
{
	char path[PATH_BYTES];
	const struct dirent *e;
	DIR *dir;
	int err = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", place, image);
	dir = opendir(path);
	if (!dir && errno == ENOENT)
		return access(place, F_OK) ? fail("cannot find", place) : 0;
	if (!dir)
		return fail("cannot read", path);
	while (!err && (e = readdir(dir)) != NULL)
		if (e->d_name[0] != '.' && unlinkat(dirfd(dir), e->d_name, 0) &&
		    errno != ENOENT)
			err = fail("cannot empty", path);
	(void)closedir(dir);
	/* Not rmdir(2): a confined daemon has unlinkat(2) alone. */
	if (!err && unlinkat(AT_FDCWD, path, AT_REMOVEDIR) && errno != ENOENT)
		err = fail("cannot remove", path);
	return err;
}
