/* SPDX-License-Identifier: Apache-2.0 */
/* Files that programs have open. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "mnt_priv.h"

static struct mnt *mnt_of(void)
{
	return fuse_get_context()->private_data;
}

static struct mnt_file *file_of(const struct fuse_file_info *fi)
{
	return (struct mnt_file *)(uintptr_t)fi->fh;
}

static int open_as(struct mnt *m, const char *name, uint32_t flags,
		   struct aq_file **out)
{
	const struct aq_elastic_options o = {
		.flags = flags, .block_bytes = m->options->block_bytes};

	return aq_file_open(m->rack, name, &o, out);
}

int mnt_size(struct mnt *m, const char *name, uint64_t *bytes)
{
	struct aq_file *f;
	int err = open_as(m, name, 0, &f);

	if (err)
		return err;
	err = aq_file_size(f, bytes);
	aq_file_close(f);
	return err;
}

/* Files only grow: an empty one is another one under the same name. */
static int make_anew(struct mnt *m, const char *name, struct aq_file **out)
{
	int err = aq_name_remove(m->rack, name, false);

	return err && err != -ENOENT ? err
				     : open_as(m, name, AQ_ELASTIC_CREATE, out);
}

static int open_name(const char *path, struct fuse_file_info *fi, bool is_new)
{
	struct mnt *m = mnt_of();
	struct mnt_file *f = calloc(1, sizeof(*f));
	uint64_t size = 0;
	int err = f ? mnt_name(m, path, f->path) : -ENOMEM;

	if (!err)
		err = open_as(m, f->path,
			      is_new ? AQ_ELASTIC_CREATE |
					       (fi->flags & O_EXCL
							? AQ_ELASTIC_NEW
							: 0)
				     : 0,
			      &f->file);
	if (!err && fi->flags & O_TRUNC)
		err = aq_file_size(f->file, &size);
	if (!err && size) {
		aq_file_close(f->file);
		f->file = NULL;
		err = make_anew(m, f->path, &f->file);
	}
	if (err) {
		if (f)
			aq_file_close(f->file);
		free(f);
		/* A queue or a store. */
		return err == -EINVAL ? -EOPNOTSUPP : err;
	}
	pthread_mutex_init(&f->lock, NULL);
	f->appends = fi->flags & O_APPEND;
	fi->fh = (uint64_t)(uintptr_t)f;
	return 0;
}

int mnt_open(const char *path, struct fuse_file_info *fi)
{
	return open_name(path, fi, false);
}

int mnt_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	return open_name(path, fi, true);
}

int mnt_read(const char *path, char *buf, size_t len, off_t at,
	     struct fuse_file_info *fi)
{
	struct mnt_file *f = file_of(fi);
	size_t got = 0;
	int err;

	pthread_mutex_lock(&f->lock);
	err = aq_file_read(f->file, (uint64_t)at, buf, len, &got);
	pthread_mutex_unlock(&f->lock);
	return err ? err : (int)got;
}

/* All of it, in records as large as they may be. */
static int append(struct mnt_file *f, const char *buf, size_t len)
{
	uint64_t max = aq_file_record_max(f->file);
	size_t done = 0;

	while (done < len) {
		size_t n = len - done;
		int err;

		if (n > max)
			n = (size_t)max;
		err = aq_file_append(f->file, buf + done, n, NULL);
		if (err)
			return done ? (int)done : err;
		done += n;
	}
	return (int)done;
}

int mnt_write(const char *path, const char *buf, size_t len, off_t at,
	      struct fuse_file_info *fi)
{
	struct mnt_file *f = file_of(fi);
	uint64_t size = 0;
	int done = 0;

	pthread_mutex_lock(&f->lock);
	if (!f->appends)
		done = aq_file_size(f->file, &size);
	if (!done && !f->appends && (uint64_t)at != size)
		done = -EOPNOTSUPP;
	if (!done)
		done = append(f, buf, len);
	pthread_mutex_unlock(&f->lock);
	return done;
}

static int truncate_open(struct mnt *m, struct mnt_file *f, uint64_t size)
{
	struct aq_file *anew;
	uint64_t now = 0;
	int err = aq_file_size(f->file, &now);

	if (err || now == size)
		return err;
	if (size)
		return -EOPNOTSUPP;
	err = make_anew(m, f->path, &anew);
	if (err)
		return err;
	aq_file_close(f->file);
	f->file = anew;
	return 0;
}

int mnt_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	struct mnt *m = mnt_of();
	struct mnt_file own = {0}, *f = fi ? file_of(fi) : &own;
	int err = 0;

	if (fi) {
		pthread_mutex_lock(&f->lock);
		err = truncate_open(m, f, (uint64_t)size);
		pthread_mutex_unlock(&f->lock);
		return err;
	}
	err = mnt_name(m, path, own.path);
	if (!err)
		err = open_as(m, own.path, 0, &own.file);
	if (!err)
		err = truncate_open(m, &own, (uint64_t)size);
	aq_file_close(own.file);
	return err;
}

int mnt_release(const char *path, struct fuse_file_info *fi)
{
	struct mnt_file *f = file_of(fi);

	aq_file_close(f->file);
	pthread_mutex_destroy(&f->lock);
	free(f);
	return 0;
}
