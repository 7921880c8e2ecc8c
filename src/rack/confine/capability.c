/* SPDX-License-Identifier: Apache-2.0 */
/* Gives capabilities up: the bounding set, then what the thread has. */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "confine_priv.h"

enum {
	CAPABILITY_COUNT = 64, /* more than there are */
};

STATIC_ASSERT(CAP_NET_RAW == 13 && CAP_NET_BIND_SERVICE == 10 &&
		      CAP_DAC_READ_SEARCH == 2,
	      "the bits of confine_capabilities");

static int get(struct __user_cap_data_struct data[2])
{
	struct __user_cap_header_struct hdr = {_LINUX_CAPABILITY_VERSION_3, 0};

	return syscall(SYS_capget, &hdr, data) == 0 ? 0 : -errno;
}

int capability_bound(uint64_t keep)
{
	struct __user_cap_data_struct data[2];
	int err = get(data);

	if (err)
		return error_set(err, "capget: %s", strerror(-err));
	/* Whoever has not this one got its bounds from somebody else, and gets
	 * no more through what it starts: no new privileges follow. */
	if (!(data[0].effective & 1u << CAP_SETPCAP))
		return 0;
	for (unsigned i = 0; i < CAPABILITY_COUNT; i++) {
		if (keep >> i & 1)
			continue;
		if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) == 0)
			continue;
		if (errno == EINVAL) /* the kernel knows no more */
			return 0;
		return error_set(-errno, "capability %u cannot be given up: %s",
				 i, strerror(errno));
	}
	return 0;
}

int capability_limit(uint64_t keep)
{
	struct __user_cap_header_struct hdr = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];
	int err = get(data);

	/* Kernels before 4.3 have none of these and say EINVAL. */
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (unsigned i = 0; !err && i < 2; i++) {
		uint32_t bits = (uint32_t)(keep >> 32 * i);

		data[i].permitted &= bits;
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (!err && syscall(SYS_capset, &hdr, data) != 0)
		err = -errno;
	return err ? error_set(err, "capabilities cannot be given up: %s",
			       strerror(-err))
		   : 0;
}
