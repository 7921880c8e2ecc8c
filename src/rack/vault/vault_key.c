/* SPDX-License-Identifier: Apache-2.0 */
/* Credentials for S3, from a file. */
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "vault.h"

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* Without what is around it; a value has visible characters of ASCII. */
static bool take(const char *text, size_t len, char *out, size_t room)
{
	while (len && is_space(text[0])) {
		text++;
		len--;
	}
	while (len && is_space(text[len - 1]))
		len--;
	if (!len || len >= room)
		return false;
	for (size_t i = 0; i < len; i++)
		if (text[i] <= ' ' || text[i] > '~')
			return false;
	memcpy(out, text, len);
	out[len] = 0;
	return true;
}

static int take_line(const char *line, size_t len, struct vault_key *key)
{
	static const char *const names[] = {"aws_access_key_id",
					    "aws_secret_access_key",
					    "aws_session_token"};
	char *const into[] = {key->id, key->secret, key->session};
	const size_t room[] = {sizeof(key->id), sizeof(key->secret),
			       sizeof(key->session)};
	const char *sign = memchr(line, '=', len);
	char name[32];

	if (!sign || !take(line, (size_t)(sign - line), name, sizeof(name)))
		return 0;
	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(name, names[i]) != 0)
			continue;
		if (take(sign + 1, len - (size_t)(sign - line) - 1, into[i],
			 room[i]))
			return 0;
		return error_set(-EINVAL, "%s has no value that can be used",
				 names[i]);
	}
	return 0;
}

int vault_key_parse(const char *text, size_t len, struct vault_key *out)
{
	const char *end = text + len;
	unsigned profiles = 0;
	int err = 0;

	*out = (struct vault_key){0};
	while (text < end && !err) {
		const char *stop = memchr(text, '\n', (size_t)(end - text));
		size_t n = (size_t)((stop ? stop : end) - text);

		profiles += n && text[0] == '[';
		if (profiles > 1)
			break;
		err = take_line(text, n, out);
		text += n + 1;
	}
	if (!err && (!out->id[0] || !out->secret[0] || strchr(out->id, ':')))
		err = error_set(-EINVAL, "it has no aws_access_key_id or no "
					 "aws_secret_access_key");
	if (err)
		vault_key_forget(out);
	return err;
}

int vault_key_read(const char *path, struct vault_key *out)
{
	char text[VAULT_KEY_FILE_MAX];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	ssize_t n = -1;
	int err = 0;

	if (fd < 0 || fstat(fd, &st))
		err = error_set(-errno, "cannot read %s: %s", path,
				strerror(errno));
	else if (st.st_mode & 077)
		err = error_set(-EPERM,
				"others than its owner may use %s: chmod 600",
				path);
	if (!err) {
		n = read(fd, text, sizeof(text));
		if (n < 0)
			err = error_set(-errno, "cannot read %s: %s", path,
					strerror(errno));
	}
	if (fd >= 0)
		(void)close(fd); /* it was only read */
	if (!err) {
		err = vault_key_parse(text, (size_t)n, out);
		if (err)
			err = error_prefix(err, "%s: ", path);
	}
	sodium_memzero(text, sizeof(text));
	return err;
}

void vault_key_forget(struct vault_key *key)
{
	sodium_memzero(key, sizeof(*key));
}
