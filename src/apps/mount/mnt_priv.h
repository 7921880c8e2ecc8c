/* SPDX-License-Identifier: Apache-2.0 */
/* A mount, and a file that a program has open through it. */
#ifndef AQ_MNT_PRIV_H
#define AQ_MNT_PRIV_H

#define FUSE_USE_VERSION 35
#include <aquifer/elastic.h>
#include <fuse3/fuse.h>
#include <pthread.h>

#include "mount.h"

struct mnt {
	const struct mount_options *options;
	struct aq_rack *rack;
	pthread_t renewal;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stops;
};

/* Threads of the kernel's may use it at the same time: `lock` is for all. */
struct mnt_file {
	pthread_mutex_t lock;
	struct aq_file *file;
	char path[AQ_NAME_MAX];
	bool appends; /* wherever the program says */
};

/* The name of what lies there; -ENAMETOOLONG. */
int mnt_name(const struct mnt *m, const char *path,
	     char out[AQ_NAME_MAX]) MUST_CHECK;

/* ---- mnt_file.c ---------------------------------------------------------- */

int mnt_open(const char *path, struct fuse_file_info *fi);
int mnt_create(const char *path, mode_t mode, struct fuse_file_info *fi);
int mnt_read(const char *path, char *buf, size_t len, off_t at,
	     struct fuse_file_info *fi);
int mnt_write(const char *path, const char *buf, size_t len, off_t at,
	      struct fuse_file_info *fi);
int mnt_truncate(const char *path, off_t size, struct fuse_file_info *fi);
int mnt_release(const char *path, struct fuse_file_info *fi);
/* Of a file, now. */
int mnt_size(struct mnt *m, const char *name, uint64_t *bytes) MUST_CHECK;

/* ---- mnt_attr.c ---------------------------------------------------------- */

int mnt_getxattr(const char *path, const char *name, char *value, size_t room);
int mnt_listxattr(const char *path, char *list, size_t room);

#endif
