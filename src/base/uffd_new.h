/* SPDX-License-Identifier: Apache-2.0 */
/* A new userfaultfd of this process, for who serves it. */
#ifndef AQ_UFFD_NEW_H
#define AQ_UFFD_NEW_H

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base.h"

/* Newer than Debian's headers. */
#define UFFD_NEW_BY_DEVICE _IO(0xAA, 0x00)
#define UFFD_NEW_USER_ONLY 1

/* For faults of system calls, too: that is a privilege, which the device stands
 * for. Without it served memory would not be safe. -1: no device. */
static inline int uffd_new(int dev)
{
	int fd = dev >= 0 ? ioctl(dev, UFFD_NEW_BY_DEVICE, O_CLOEXEC) : -1;

	if (fd < 0)
		fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* For memory that system calls never touch: no privilege. */
static inline int uffd_new_plain(void)
{
	int fd = (int)syscall(SYS_userfaultfd,
			      O_CLOEXEC | O_NONBLOCK | UFFD_NEW_USER_ONLY);

	return fd < 0 ? -errno : fd;
}

#endif
