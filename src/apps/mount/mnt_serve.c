/* SPDX-License-Identifier: Apache-2.0 */
/* A mount: its names, its lease, and its life. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/log.h"
#include "mnt_priv.h"

enum {
	RENEW_MS = 1000, /* where the period is not known */
};

int mnt_name(const struct mnt *m, const char *path, char out[AQ_NAME_MAX])
{
	const char *top = m->options->path;
	int n = snprintf(out, AQ_NAME_MAX, "%s%s",
			 strcmp(top, "/") == 0 ? "" : top,
			 strcmp(path, "/") == 0 ? "" : path);

	if (n == 0)
		(void)snprintf(out, AQ_NAME_MAX, "/");
	return n < AQ_NAME_MAX ? 0 : -ENAMETOOLONG;
}

static struct mnt *mnt_of(void)
{
	return fuse_get_context()->private_data;
}

/* What no name can be is not there. */
static int error_of(int err)
{
	return err == -EINVAL ? -ENOENT : err;
}

/* ---- names --------------------------------------------------------------- */

static void fill(const struct aq_name *name, struct stat *st)
{
	bool is_folder = name->kind == AQ_NAME_FOLDER;

	*st = (struct stat){
		.st_mode = is_folder			? S_IFDIR | 0755
			   : name->kind == AQ_NAME_FILE ? S_IFREG | 0644
							: S_IFREG,
		.st_nlink = is_folder ? 2 : 1,
		.st_uid = getuid(),
		.st_gid = getgid(),
		.st_size = is_folder ? 0 : (off_t)name->used_bytes,
	};
}

static int get_attr(const char *path, struct stat *st,
		    struct fuse_file_info *fi)
{
	const struct aq_name top = {.kind = AQ_NAME_FOLDER};
	struct mnt *m = mnt_of();
	char at[AQ_NAME_MAX];
	struct aq_name name;
	uint64_t bytes = 0;
	int err = mnt_name(m, path, at);

	if (!err && strcmp(at, "/") == 0) {
		fill(&top, st);
		return 0;
	}
	if (!err)
		err = aq_name_stat(m->rack, at, &name);
	if (err)
		return error_of(err);
	fill(&name, st);
	/* What the controller knows is as old as the last beat. */
	if (name.kind == AQ_NAME_FILE && name.is_ready &&
	    !mnt_size(m, at, &bytes))
		st->st_size = (off_t)bytes;
	st->st_blocks = (st->st_size + 511) / 512;
	return 0;
}

struct listing {
	void *buf;
	fuse_fill_dir_t add;
};

static int add_entry(const struct aq_name *name, void *user)
{
	const struct listing *l = user;
	struct stat st;

	fill(name, &st);
	return l->add(l->buf, strrchr(name->path, '/') + 1, &st, 0, 0) ? -ENOMEM
								       : 0;
}

static int read_dir(const char *path, void *buf, fuse_fill_dir_t add, off_t at,
		    struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	struct listing l = {.buf = buf, .add = add};
	struct mnt *m = mnt_of();
	char name[AQ_NAME_MAX];
	int err = mnt_name(m, path, name);

	if (err)
		return err;
	(void)add(buf, ".", NULL, 0, 0);
	(void)add(buf, "..", NULL, 0, 0);
	return error_of(aq_name_each(m->rack, name, add_entry, &l));
}

static int make_dir(const char *path, mode_t mode)
{
	struct mnt *m = mnt_of();
	char name[AQ_NAME_MAX];
	int err = mnt_name(m, path, name);

	return err ? err : aq_name_make(m->rack, name);
}

static int remove_name(const char *path)
{
	struct mnt *m = mnt_of();
	char name[AQ_NAME_MAX];
	int err = mnt_name(m, path, name);

	return err ? err : error_of(aq_name_remove(m->rack, name, false));
}

/* A name that is there is replaced, in two steps: there is a moment without
 * it. */
static int rename_name(const char *path, const char *to, unsigned flags)
{
	struct mnt *m = mnt_of();
	char name[AQ_NAME_MAX], new_name[AQ_NAME_MAX];
	int err = mnt_name(m, path, name);

	if (!err)
		err = mnt_name(m, to, new_name);
	if (err)
		return err;
	if (flags & ~1u) /* all but RENAME_NOREPLACE */
		return -EINVAL;
	err = aq_name_move(m->rack, name, new_name);
	if (err != -EEXIST || flags)
		return error_of(err);
	err = aq_name_remove(m->rack, new_name, false);
	return err ? err : aq_name_move(m->rack, name, new_name);
}

/* Names have no owners, modes and times: who sets them goes on. */
static int ignore_mode(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	return 0;
}

static int ignore_owner(const char *path, uid_t uid, gid_t gid,
			struct fuse_file_info *fi)
{
	return 0;
}

static int ignore_times(const char *path, const struct timespec times[2],
			struct fuse_file_info *fi)
{
	return 0;
}

/* ---- the lease ----------------------------------------------------------- */

static int renew_one(const struct aq_name *name, void *user)
{
	struct mnt *m = user;

	(void)aq_job_renew(m->rack, name->path, NULL); /* the next time */
	return 0;
}

static uint32_t renew(struct mnt *m)
{
	uint32_t period_ms = 0;
	int err;

	if (strcmp(m->options->path, "/") == 0)
		err = aq_name_each(m->rack, "/", renew_one, m);
	else
		err = aq_job_renew(m->rack, m->options->path, &period_ms);
	/* Without a controller leases stand still. */
	if (err)
		log_info("mount", "%s", error_last());
	return period_ms ? period_ms / 3 : RENEW_MS;
}

static void *keep(void *arg)
{
	struct mnt *m = arg;

	pthread_mutex_lock(&m->lock);
	while (!m->stops) {
		struct timespec until;
		uint32_t ms;

		pthread_mutex_unlock(&m->lock);
		ms = renew(m);
		(void)clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += (long)(ms % 1000) * 1000000;
		until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_mutex_lock(&m->lock);
		if (!m->stops)
			(void)pthread_cond_timedwait(&m->wake, &m->lock,
						     &until);
	}
	pthread_mutex_unlock(&m->lock);
	return NULL;
}

static void stop_renewal(struct mnt *m)
{
	pthread_mutex_lock(&m->lock);
	m->stops = true;
	(void)pthread_cond_signal(&m->wake);
	pthread_mutex_unlock(&m->lock);
	(void)pthread_join(m->renewal, NULL);
}

/* ---- life ---------------------------------------------------------------- */

static void *set_up(struct fuse_conn_info *conn, struct fuse_config *config)
{
	/* Others change the same files: nothing is kept, and sizes are asked
	 * for. */
	config->direct_io = 1;
	config->attr_timeout = 0;
	config->entry_timeout = 0;
	config->negative_timeout = 0;
	if (conn->capable & FUSE_CAP_ATOMIC_O_TRUNC)
		conn->want |= FUSE_CAP_ATOMIC_O_TRUNC;
	return mnt_of();
}

static const struct fuse_operations operations = {
	.init = set_up,
	.getattr = get_attr,
	.readdir = read_dir,
	.mkdir = make_dir,
	.unlink = remove_name,
	.rmdir = remove_name,
	.rename = rename_name,
	.chmod = ignore_mode,
	.chown = ignore_owner,
	.utimens = ignore_times,
	.open = mnt_open,
	.create = mnt_create,
	.read = mnt_read,
	.write = mnt_write,
	.truncate = mnt_truncate,
	.release = mnt_release,
	.getxattr = mnt_getxattr,
	.listxattr = mnt_listxattr,
};

/* Threads do not survive a fork, so the rack is opened behind it; before it
 * somebody is there to read why it cannot be. */
static int check(const struct mount_options *o)
{
	struct aq_name name;
	struct aq_rack *rack;
	int err = aq_rack_open(NULL, &rack);

	if (err)
		return err;
	if (strcmp(o->path, "/") != 0)
		err = aq_name_stat(rack, o->path, &name);
	if (!err && strcmp(o->path, "/") != 0 && name.kind != AQ_NAME_FOLDER)
		err = error_set(-ENOTDIR, "%s is no folder", o->path);
	aq_rack_close(rack);
	return err;
}

static int serve(struct mnt *m, struct fuse *fuse)
{
	struct fuse_session *session = fuse_get_session(fuse);
	int err = aq_rack_open(NULL, &m->rack);

	if (err)
		return err;
	err = -pthread_create(&m->renewal, NULL, keep, m);
	if (!err) {
		if (fuse_set_signal_handlers(session) == 0) {
			struct fuse_loop_config loop = {.clone_fd = 0,
							.max_idle_threads = 4};

			(void)fuse_loop_mt(fuse, &loop); /* it was ended */
			fuse_remove_signal_handlers(session);
		}
		stop_renewal(m);
	}
	aq_rack_close(m->rack);
	return err;
}

int mount_serve(const struct mount_options *options)
{
	struct mnt m = {.options = options,
			.lock = PTHREAD_MUTEX_INITIALIZER,
			.wake = PTHREAD_COND_INITIALIZER};
	struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
	struct fuse *fuse;
	int err = check(options);

	if (err)
		return err;
	if (fuse_opt_add_arg(&args, "aquifer") ||
	    fuse_opt_add_arg(&args, "-ofsname=aquifer,subtype=aquifer")) {
		fuse_opt_free_args(&args);
		return error_set(-ENOMEM, "no memory for a mount");
	}
	fuse = fuse_new(&args, &operations, sizeof(operations), &m);
	fuse_opt_free_args(&args);
	if (!fuse)
		return error_set(-EIO, "libfuse cannot be started");
	if (fuse_mount(fuse, options->folder)) {
		fuse_destroy(fuse);
		return error_set(-EIO,
				 "%s cannot be mounted: is it an empty folder, "
				 "and is there a /dev/fuse?",
				 options->folder);
	}
	err = options->mounted(options->ctx);
	if (!err && fuse_daemonize(options->is_foreground))
		err = error_set(-EIO, "cannot go to the background");
	if (!err)
		err = serve(&m, fuse);
	fuse_unmount(fuse);
	fuse_destroy(fuse);
	return err;
}
