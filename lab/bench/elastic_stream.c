/* SPDX-License-Identifier: Apache-2.0 */
#include "elastic_stream.h"

#include <errno.h>
#include <unistd.h>

#include "base/error.h"

int elastic_stream_write(int fd, const void *data, size_t bytes)
{
	const uint8_t *at = data;

	while (bytes) {
		ssize_t n = write(fd, at, bytes);

		if (n <= 0)
			return error_set(-EIO, "the peer's server is gone");
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int elastic_stream_read(int fd, void *data, size_t bytes)
{
	uint8_t *at = data;

	while (bytes) {
		ssize_t n = read(fd, at, bytes);

		if (n <= 0)
			return error_set(-EIO, "the peer's server is gone");
		at += n;
		bytes -= (size_t)n;
	}
	return 0;
}

int elastic_stream_line(int fd, char line[ELASTIC_LINE])
{
	unsigned n = 0;
	int err;

	for (;;) {
		err = elastic_stream_read(fd, &line[n], 1);
		if (err)
			return err;
		if (n && line[n - 1] == '\r' && line[n] == '\n')
			break;
		if (++n == ELASTIC_LINE)
			return error_set(-EPROTO, "the peer says %.20s", line);
	}
	line[n - 1] = '\0';
	return 0;
}
