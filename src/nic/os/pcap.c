/* SPDX-License-Identifier: Apache-2.0 */
/* A writer for the classic pcap format with nanosecond times. */
#include "pcap.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
	PATH_BYTES = 1024,
	LINKTYPE_ETHERNET = 1,
	SNAP_BYTES = 65535,
};

struct pcap {
	int fd;
};

struct file_header {
	uint32_t magic;
	uint16_t major;
	uint16_t minor;
	int32_t zone;
	uint32_t accuracy;
	uint32_t snap_bytes;
	uint32_t link_type;
};
STATIC_ASSERT(sizeof(struct file_header) == 24, "pcap file header");

struct frame_header {
	uint32_t sec;
	uint32_t nsec;
	uint32_t captured_bytes;
	uint32_t frame_bytes;
};
STATIC_ASSERT(sizeof(struct frame_header) == 16, "pcap frame header");

static int expand(const char *path, char out[PATH_BYTES])
{
	const char *mark = strstr(path, "%p");
	int n;

	if (mark)
		n = snprintf(out, PATH_BYTES, "%.*s%d%s", (int)(mark - path),
			     path, (int)getpid(), mark + 2);
	else
		n = snprintf(out, PATH_BYTES, "%s", path);
	return n < 0 || n >= PATH_BYTES ? -ENAMETOOLONG : 0;
}

int pcap_create(const char *path, struct pcap **out)
{
	static const struct file_header header = {
		.magic = 0xa1b23c4d,
		.major = 2,
		.minor = 4,
		.snap_bytes = SNAP_BYTES,
		.link_type = LINKTYPE_ETHERNET,
	};
	char name[PATH_BYTES];
	struct pcap *p;
	int err = expand(path, name);

	if (err)
		return err;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_APPEND,
		     0600);
	if (p->fd < 0) {
		err = -errno;
		goto err_free;
	}
	if (write(p->fd, &header, sizeof(header)) != sizeof(header)) {
		err = errno ? -errno : -EIO;
		goto err_close;
	}
	*out = p;
	return 0;

err_close:
	close(p->fd);
err_free:
	free(p);
	return err;
}

void pcap_destroy(struct pcap *p)
{
	if (!p)
		return;
	close(p->fd);
	free(p);
}

void pcap_write(struct pcap *p, const uint8_t *frame, size_t len_bytes)
{
	struct frame_header header;
	struct iovec iov[2];
	struct timespec now = clock_timespec(clock_real_ns());
	ssize_t n;

	header = (struct frame_header){
		.sec = (uint32_t)now.tv_sec,
		.nsec = (uint32_t)now.tv_nsec,
		.captured_bytes = (uint32_t)len_bytes,
		.frame_bytes = (uint32_t)len_bytes,
	};
	iov[0] = (struct iovec){&header, sizeof(header)};
	iov[1] = (struct iovec){(void *)(uintptr_t)frame, len_bytes};
	n = writev(p->fd, iov, 2);
	(void)n; /* a full disk ends the capture, not the program */
}
