import java.io.File;
import java.security.PrivilegedExceptionAction;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.HdfsConfiguration;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Hadoop's own mini cluster with Kerberos, whose web servers speak https alone: `FOLDER KEYTAB REALM USER`. The keytab has
 * keys of hdfs/localhost, HTTP/localhost and the user. Says the port of the namenode's WebHDFS and a delegation token of
 * the user in one line, and ends when its input does.
 */
public final class SecureHdfsCluster {
    private SecureHdfsCluster() {
    }

    public static void main(final String[] arguments) throws Exception {
        final String keytab = arguments[1];
        final String superuser = "hdfs/localhost@" + arguments[2];
        final String user = arguments[3];
        final Configuration settings = settings(keytab, superuser, "HTTP/localhost@" + arguments[2]);
        UserGroupInformation.setConfiguration(settings);
        UserGroupInformation.loginUserFromKeytab(superuser, keytab);
        try (MiniDFSCluster cluster =
                new MiniDFSCluster.Builder(settings, new File(arguments[0])).numDataNodes(1).build()) {
            cluster.waitActive();
            cluster.getFileSystem().setPermission(new Path("/"), new FsPermission((short) 0777));
            final UserGroupInformation login =
                    UserGroupInformation.loginUserFromKeytabAndReturnUGI(user + "@" + arguments[2], keytab);
            final PrivilegedExceptionAction<String> token = () -> FileSystem
                    .newInstance(cluster.getURI(), cluster.getConfiguration(0)).getDelegationToken(user).encodeToUrlString();
            System.out.println(cluster.getNameNode().getHttpsAddress().getPort() + " " + login.doAs(token));
            while (System.in.read() >= 0) {
                continue;
            }
        }
    }

    private static Configuration settings(final String keytab, final String superuser, final String web) {
        final Configuration settings = new HdfsConfiguration();
        settings.set("hadoop.security.authentication", "kerberos");
        settings.set("hadoop.security.auth_to_local", "RULE:[1:$1]\nRULE:[2:$1]");
        settings.set("hadoop.http.authentication.type", "kerberos");
        for (final String role : new String[] {"dfs.namenode", "dfs.datanode"}) {
            settings.set(role + ".kerberos.principal", superuser);
            settings.set(role + ".keytab.file", keytab);
        }
        for (final String role : new String[] {"dfs.web.authentication", "hadoop.http.authentication"}) {
            settings.set(role + ".kerberos.principal", web);
            settings.set(role + ".kerberos.keytab", keytab);
        }
        settings.setBoolean("dfs.block.access.token.enable", true);
        settings.set("dfs.data.transfer.protection", "authentication");
        settings.set("dfs.http.policy", "HTTPS_ONLY");
        settings.set("dfs.namenode.https-address", "localhost:0");
        settings.set("dfs.datanode.https.address", "localhost:0");
        settings.setInt("dfs.replication", 1);
        return settings;
    }
}
