/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a socket of frames is polled and when it wakes the NIC thread. Until it
 * is used, only the epoll set watches it: a system call at every poll would
 * slow down programs that only use cables. From then on it is polled, and a
 * frame wakes the NIC thread only while the NIC thread sleeps and no other
 * thread polls: a thread that wakes beside an application that has taken the
 * frame already costs both of them their core. Meanwhile it is not even in the
 * set, which would cost each frame 0.1 us.
 */
#ifndef AQ_WATCH_H
#define AQ_WATCH_H

#include "os_priv.h"

struct watch {
	struct env_path *path; /* what is polled; NULL: not open */
	int fd;
	bool polled;
	bool armed; /* a frame wakes the NIC thread: it is in the epoll set */
};

/* The socket stays its port's. */
int watch_open(struct watch *w, struct env_path *path, int fd) MUST_CHECK;
/* Frames are expected: from now on it is polled. */
void watch_start(struct watch *w);
/* The epoll set reported a frame. */
void watch_event(struct watch *w);
void watch_arm(struct watch *w, bool on);

#endif
