/* SPDX-License-Identifier: Apache-2.0 */
/* System V shared memory: the id of a segment is that of its object. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/shm.h>
#include <unistd.h>

#include "shm.h"

SHM_EXPORT int shmget(key_t key, size_t size, int flags);
SHM_EXPORT void *shmat(int id, const void *addr, int flags);
SHM_EXPORT int shmdt(const void *addr);
SHM_EXPORT int shmctl(int id, int command, struct shmid_ds *out);

static int name_of(key_t key, char full[COHERENT_NAME_MAX])
{
	char name[32];
	uint64_t random;

	if (key != IPC_PRIVATE)
		(void)snprintf(name, sizeof(name), "%08x", (unsigned)key);
	else if (getrandom(&random, sizeof(random), 0) == sizeof(random))
		(void)snprintf(name, sizeof(name), "private-%016" PRIx64,
			       random);
	else
		return -EIO;
	return shm_name(SHM_KEY, name, full);
}

static int find(const char *name, unsigned flags, struct shm_object *out)
{
	int sock = shm_connect();
	int err = sock < 0 ? sock : shm_find(sock, name, 0, flags, out, NULL);

	if (sock >= 0)
		(void)close(sock);
	return err;
}

static int get(key_t key, size_t size, int flags)
{
	char name[COHERENT_NAME_MAX];
	unsigned how = (flags & IPC_CREAT ? COHERENT_CREATE : 0) |
		       (flags & IPC_EXCL ? COHERENT_EXCLUSIVE : 0);
	struct shm_object o;
	int err = name_of(key, name);

	if (key == IPC_PRIVATE)
		how = COHERENT_CREATE | COHERENT_EXCLUSIVE;
	if (!err)
		err = find(name, how, &o);
	if (!err && o.id > INT_MAX)
		err = -EOVERFLOW;
	if (err)
		return err;
	if (o.is_new) {
		err = size ? shm_resize(o.id, size) : -EINVAL;
		/* Nobody can use it without a length. */
		if (err)
			(void)!shm_unlink_object(NULL, o.id);
		return err ? err : (int)o.id;
	}
	err = o.length_bytes ? 0 : shm_await(o.id, &o);
	if (!err && size > o.length_bytes)
		err = -EINVAL;
	return err ? err : (int)o.id;
}

int shmget(key_t key, size_t size, int flags)
{
	SHM_NEXT(next, shmget, "shmget");
	int id;

	if (!shm_is_on())
		return next ? next(key, size, flags) : shm_fail(ENOSYS);
	id = get(key, size, flags);
	return id < 0 ? shm_fail(id) : id;
}

void *shmat(int id, const void *addr, int flags)
{
	int prot = flags & SHM_RDONLY ? PROT_READ : PROT_READ | PROT_WRITE;
	struct shm_object o;
	long at;
	SHM_NEXT(next, shmat, "shmat");

	if (!shm_is_on())
		return next ? next(id, addr, flags)
			    : (void *)(intptr_t)shm_fail(ENOSYS);
	at = id > 0 ? shm_look((uint64_t)id, &o) : -EINVAL;
	if (!at)
		at = shm_map((uint64_t)id, (void *)(uintptr_t)addr, 0,
			     o.length_bytes, prot);
	if (at < 0)
		return (void *)(intptr_t)shm_fail(at == -ENOENT ? -EINVAL
								: (int)at);
	return (void *)at;
}

int shmdt(const void *addr)
{
	uint64_t size_bytes = shm_is_on() ? shm_size_at(addr) : 0;
	SHM_NEXT(next, shmdt, "shmdt");

	if (!shm_is_on())
		return next ? next(addr) : shm_fail(ENOSYS);
	if (!size_bytes)
		return shm_fail(EINVAL);
	return munmap((void *)(uintptr_t)addr, size_bytes);
}

static int stat_object(int id, struct shmid_ds *out)
{
	struct shm_object o;
	int err = shm_look((uint64_t)id, &o);

	if (err)
		return err;
	memset(out, 0, sizeof(*out));
	out->shm_perm.uid = out->shm_perm.cuid = geteuid();
	out->shm_perm.gid = out->shm_perm.cgid = getegid();
	out->shm_perm.mode = 0600;
	out->shm_segsz = o.length_bytes;
	/* Of this process: nobody counts them all. */
	out->shm_nattch = shm_count(o.id);
	return 0;
}

int shmctl(int id, int command, struct shmid_ds *out)
{
	SHM_NEXT(next, shmctl, "shmctl");
	int err;

	/* Of the machine, and of no segment. */
	if (!shm_is_on() || command == IPC_INFO || command == SHM_INFO)
		return next ? next(id, command, out) : shm_fail(ENOSYS);
	if (id <= 0)
		err = -EINVAL;
	else if (command == IPC_STAT)
		err = out ? stat_object(id, out) : -EFAULT;
	else if (command == IPC_RMID)
		err = shm_unlink_object(NULL, (uint64_t)id);
	else
		err = -EOPNOTSUPP;
	return err ? shm_fail(err == -ENOENT ? -EINVAL : err) : 0;
}
