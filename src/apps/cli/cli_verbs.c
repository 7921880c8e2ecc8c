/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a libibverbs.so.1 and asks it about its devices. */
#include "cli_verbs.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

/* X(function, version node of Debian's library) */
#define SYMBOLS(X)                         \
	X(get_device_list, "IBVERBS_1.1")  \
	X(free_device_list, "IBVERBS_1.1") \
	X(get_device_name, "IBVERBS_1.1")  \
	X(get_device_guid, "IBVERBS_1.1")  \
	X(open_device, "IBVERBS_1.1")      \
	X(close_device, "IBVERBS_1.1")     \
	X(query_device, "IBVERBS_1.1")     \
	X(query_gid, "IBVERBS_1.1")

struct library {
	void *handle;
#define FIELD(name, version) __typeof__(ibv_##name) *name;
	SYMBOLS(FIELD)
#undef FIELD
};

static int library_open(struct library *lib, const char *path, char why[256])
{
	lib->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib->handle) {
		(void)snprintf(why, 256, "%s", dlerror());
		return -ENOENT;
	}
#define LOOK_UP(name, version)                                               \
	*(void **)&lib->name = dlvsym(lib->handle, "ibv_" #name, version);   \
	if (!lib->name) {                                                    \
		(void)snprintf(why, 256, "%s has no ibv_" #name "@" version, \
			       path);                                        \
		(void)dlclose(lib->handle);                                  \
		return -ENOENT;                                              \
	}
	SYMBOLS(LOOK_UP)
#undef LOOK_UP
	return 0;
}

static void query_dm(struct ibv_context *ctx, struct cli_verbs_device *out)
{
	struct verbs_context *vctx = verbs_get_ctx_op(ctx, query_device_ex);
	struct ibv_device_attr_ex ex = {0};

	if (vctx && vctx->query_device_ex(ctx, NULL, &ex, sizeof(ex)) == 0)
		out->dm_bytes = ex.max_dm_size;
}

static int query_open(const struct library *lib, struct ibv_context *ctx,
		      struct cli_verbs_device *out)
{
	struct verbs_context *vctx = verbs_get_ctx_op(ctx, query_port);
	int err = lib->query_device(ctx, &out->attr);

	if (err)
		return -err;
	if (!vctx)
		return -EOPNOTSUPP;
	err = vctx->query_port(ctx, 1, &out->port, sizeof(out->port));
	if (err)
		return -err;
	query_dm(ctx, out);
	for (int i = 0; i < out->port.gid_tbl_len && i < CLI_VERBS_GIDS; i++)
		if (lib->query_gid(ctx, 1, i, &out->gids[i]) == 0)
			out->gid_count = (unsigned)i + 1;
	return 0;
}

static int query_device(const struct library *lib, struct ibv_device *dev,
			struct cli_verbs_device *out, char why[256])
{
	struct ibv_context *ctx;
	int err;

	memset(out, 0, sizeof(*out));
	(void)snprintf(out->name, sizeof(out->name), "%s",
		       lib->get_device_name(dev));
	out->guid = be64toh(lib->get_device_guid(dev));
	ctx = lib->open_device(dev);
	if (!ctx) {
		err = errno ? -errno : -EIO;
		(void)snprintf(why, 256, "cannot open %s: %s", out->name,
			       strerror(-err));
		return err;
	}
	err = query_open(lib, ctx, out);
	if (err)
		(void)snprintf(why, 256, "cannot query %s: %s", out->name,
			       strerror(-err));
	(void)lib->close_device(ctx); /* the answer is already here */
	return err;
}

int cli_verbs_query(const char *path, unsigned index,
		    struct cli_verbs_device *out, char why[256])
{
	struct ibv_device **list;
	struct library lib;
	int count = 0;
	int err = library_open(&lib, path, why);

	if (err)
		return err;
	list = lib.get_device_list(&count);
	if (!list || index >= (unsigned)count) {
		(void)snprintf(why, 256, "the library lists %d devices", count);
		err = -ENODEV;
	} else {
		err = query_device(&lib, list[index], out, why);
	}
	if (list)
		lib.free_device_list(list);
	/* Not unloaded: providers may have started threads in it. */
	return err;
}

int cli_verbs_device_count(const char *path, char why[256])
{
	struct ibv_device **list;
	struct library lib;
	int count = 0;
	int err = library_open(&lib, path, why);

	if (err)
		return err;
	list = lib.get_device_list(&count);
	if (!list) {
		(void)snprintf(why, 256, "no device list: %s", strerror(errno));
		return -ENODEV;
	}
	lib.free_device_list(list);
	return count;
}
