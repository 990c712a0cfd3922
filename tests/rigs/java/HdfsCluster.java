import java.io.BufferedReader;
import java.io.File;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.stream.Collectors;

import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.permission.FsPermission;
import org.apache.hadoop.hdfs.MiniDFSCluster;
import org.apache.hadoop.hdfs.MiniDFSNNTopology;

/**
 * Hadoop's own mini cluster: two namenodes, of which the first is active and the other on standby, and a datanode. Says
 * the ports of both namenodes' WebHDFS in one line. At each line of its input, the other namenode becomes active; it ends
 * when its input does.
 */
public final class HdfsCluster {
    private HdfsCluster() {
    }

    public static void main(final String[] arguments) throws Exception {
        final Configuration settings = new Configuration();
        settings.setInt("dfs.replication", 1);
        settings.setInt("dfs.ls.limit", 7);
        settings.setInt("dfs.namenode.fs-limits.max-component-length", 300);
        settings.setInt("dfs.client.retry.window.base", 10);
        settings.setInt("dfs.namenode.handler.count", 4);
        settings.setInt("dfs.datanode.handler.count", 4);
        final File folder = new File(arguments[0]);
        try (MiniDFSCluster cluster = new MiniDFSCluster.Builder(settings, folder)
                .nnTopology(MiniDFSNNTopology.simpleHATopology()).numDataNodes(1).build()) {
            cluster.waitActive();
            cluster.transitionToActive(0);
            final Path root = new Path("/");
            cluster.getFileSystem(0).setPermission(root, new FsPermission((short) 0777));
            System.out.println("ports=" + Arrays.stream(new int[] {0, 1})
                    .mapToObj(number -> Integer.toString(cluster.getNameNode(number).getHttpAddress().getPort()))
                    .collect(Collectors.joining(",")));
            final BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (int active = 0; lines.readLine() != null; active = 1 - active) {
                cluster.transitionToStandby(active);
                cluster.transitionToActive(1 - active);
                System.out.println("changed");
            }
        }
    }
}
