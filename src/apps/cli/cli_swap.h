/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two ends of a swap device in far memory: what the kernel says about the
 * NBD device, and the nbdkit of this machine that serves it.
 */
#ifndef AQ_CLI_SWAP_H
#define AQ_CLI_SWAP_H

#include <limits.h>

#include "base/base.h"
#include "base/rundir.h"
#include "cli_proc.h"

/* ---- cli_swap_device.c -------------------------------------------------- */

struct swap_device {
	bool is_there;	   /* the kernel has the device */
	bool is_connected; /* to a server */
	bool is_swap;	   /* the kernel swaps to it */
	uint64_t size_bytes;
	uint64_t used_bytes;
	int priority;
};

/* "/dev/nbd0" only; says on stderr what is wrong with others. */
int swap_device_check_name(const char *device) MUST_CHECK;
void swap_device_look(const char *device, struct swap_device *out);
/* The numbers of one line of /proc/swaps, if it is about the device. */
bool swap_device_parse(const char *line, const char *device,
		       struct swap_device *out);

/* ---- cli_swap_server.c -------------------------------------------------- */

enum {
	SWAP_TEXT_MAX = PATH_MAX + 64,
	SWAP_WORDS_MAX = 20,
};

struct swap_server {
	char name[64]; /* of its pid file and its log */
	char rack[RUNDIR_RACK_MAX + 1];
	char rundir[RUNDIR_PATH_MAX];
	char socket[SWAP_TEXT_MAX];
};

/* Where the server of the device is, was or will be. */
int swap_server_place(const char *device, struct swap_server *out) MUST_CHECK;
/* Runs the command and waits until the server greets, which it does only once
 * it has reached the rack. */
int swap_server_start(const struct swap_server *s,
		      const char *const words[]) MUST_CHECK;
/* -ENOENT: there never was one or it has been ended; -ESRCH: it died. */
int swap_server_find(const struct swap_server *s,
		     struct cli_proc *out) MUST_CHECK;
void swap_server_end(const struct swap_server *s);
/* Whether a pid file of that name is a swap server's: those are not nodes. */
bool swap_server_is_name(const char *name);

#endif
