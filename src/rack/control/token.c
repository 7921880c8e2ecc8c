/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens, their hashes, and the files that hold the rack's own. */
#include "ctl_token.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/rundir.h"

enum {
	PATH_BYTES = 512,
	/* Somebody else's half-written file gets so long to become whole. */
	READ_TRIES = 100,
	READ_PAUSE_NS = 10000000,
};

STATIC_ASSERT(sizeof(struct ctl_token_hash) == crypto_hash_sha256_BYTES,
	      "token hash");

static bool is_hex64(const char *text)
{
	return strnlen(text, CTL_TOKEN_TEXT) == CTL_TOKEN_CHARS &&
	       strspn(text, "0123456789abcdef") == CTL_TOKEN_CHARS;
}

bool ctl_token_is_valid(const char *text)
{
	return is_hex64(text);
}

void ctl_token_format(const uint8_t bytes[CTL_TOKEN_BYTES],
		      char text[CTL_TOKEN_TEXT])
{
	sodium_bin2hex(text, CTL_TOKEN_TEXT, bytes, CTL_TOKEN_BYTES);
}

int ctl_token_hash(const char *text, struct ctl_token_hash *out)
{
	if (!is_hex64(text))
		return error_set(-EINVAL, "a token has %d hex digits",
				 CTL_TOKEN_CHARS);
	crypto_hash_sha256(out->bytes, (const unsigned char *)text,
			   CTL_TOKEN_CHARS);
	return 0;
}

bool ctl_token_hash_equal(const struct ctl_token_hash *a,
			  const struct ctl_token_hash *b)
{
	return sodium_memcmp(a->bytes, b->bytes, sizeof(a->bytes)) == 0;
}

void ctl_token_hash_format(const struct ctl_token_hash *h,
			   char text[CTL_TOKEN_TEXT])
{
	sodium_bin2hex(text, CTL_TOKEN_TEXT, h->bytes, sizeof(h->bytes));
}

int ctl_token_hash_parse(const char *text, struct ctl_token_hash *out)
{
	if (!is_hex64(text) ||
	    sodium_hex2bin(out->bytes, sizeof(out->bytes), text,
			   CTL_TOKEN_CHARS, NULL, NULL, NULL))
		return error_set(-EINVAL, "a hash has %d hex digits",
				 CTL_TOKEN_CHARS);
	return 0;
}

/* -EAGAIN: not all of it is there yet. */
static int file_read(const char *path, char text[CTL_TOKEN_TEXT])
{
	char buf[CTL_TOKEN_TEXT + 1];
	int fd = rundir_file_open(path, O_RDONLY);
	struct stat st;
	ssize_t n;
	int err;

	if (fd < 0)
		return fd;
	n = fstat(fd, &st) < 0 ? -1 : read(fd, buf, sizeof(buf) - 1);
	err = n < 0 ? -errno : 0;
	(void)close(fd); /* only read */
	if (err)
		return error_set(err, "cannot read %s: %s", path,
				 strerror(-err));
	if (st.st_mode & 077)
		return error_set(-EPERM,
				 "%s is open to others; remove it, and a new "
				 "token is made",
				 path);
	buf[n] = 0;
	buf[strcspn(buf, "\n")] = 0;
	if (strlen(buf) < CTL_TOKEN_CHARS)
		return error_set(-EAGAIN, "%s holds no token", path);
	if (!is_hex64(buf))
		return error_set(-EBADMSG, "%s holds no token", path);
	memcpy(text, buf, CTL_TOKEN_TEXT);
	return 0;
}

static int write_all(int fd, const char *buf, size_t len_bytes)
{
	ssize_t n = write(fd, buf, len_bytes);

	if (n < 0)
		return -errno;
	return (size_t)n == len_bytes ? 0 : -EIO;
}

/* link(2) is O_EXCL for a file that is complete. */
static int file_make(const char *path)
{
	uint8_t bytes[CTL_TOKEN_BYTES];
	char text[CTL_TOKEN_TEXT], temp[PATH_BYTES];
	int fd, err, len;

	len = snprintf(temp, sizeof(temp), "%s.%ld", path, (long)getpid());
	if (len < 0 || (size_t)len >= sizeof(temp))
		return error_set(-ENAMETOOLONG, "%s is too long", path);
	randombytes_buf(bytes, sizeof(bytes));
	ctl_token_format(bytes, text);
	sodium_memzero(bytes, sizeof(bytes));
	(void)unlink(temp); /* of a process long gone that had our pid */
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return error_set(-errno, "cannot make %s: %s", temp,
				 strerror(errno));
	text[CTL_TOKEN_CHARS] = '\n';
	err = write_all(fd, text, CTL_TOKEN_TEXT);
	(void)close(fd); /* write told all that matters */
	if (!err && link(temp, path) < 0 && errno != EEXIST)
		err = -errno;
	(void)unlink(temp);
	sodium_memzero(text, sizeof(text));
	return err ? error_set(err, "cannot make %s: %s", path, strerror(-err))
		   : 0;
}

int ctl_token_file(const char *dir, const char *name, char text[CTL_TOKEN_TEXT])
{
	const struct timespec pause = {.tv_nsec = READ_PAUSE_NS};
	char path[PATH_BYTES];
	int len = snprintf(path, sizeof(path), "%s/%s", dir, name);
	int err = -EAGAIN;

	if (len < 0 || (size_t)len >= sizeof(path))
		return error_set(-ENAMETOOLONG, "%s/%s is too long", dir, name);
	if (sodium_init() < 0)
		return error_set(-EIO, "libsodium cannot start");
	for (unsigned i = 0; i < READ_TRIES && err == -EAGAIN; i++) {
		if (i)
			(void)nanosleep(&pause, NULL);
		err = file_read(path, text);
		if (err == -ENOENT) {
			err = file_make(path);
			if (!err)
				err = file_read(path, text);
		}
	}
	return err;
}
